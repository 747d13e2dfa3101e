//! The HTTP server: every route of the API over any store.
//!
//! One table of routes ([`routes`]) says for each its method, path, scope, body and forms; routing,
//! limits and the OpenAPI description all read it. A request passes [`serve`], which checks what all
//! routes share ([`auth`]: who calls and what they may do), and comes to its handler as a [`call::Call`]. Every failure leaves through
//! [`failure`], as a problem document.
//!
//! [`Api`] is the whole as a service, callable in process; [`Server`] puts it behind a socket.

mod api;
mod app;
mod audit;
mod auth;
mod body;
mod bucket;
mod call;
mod caller;
mod connection;
mod cors;
mod depths;
mod failure;
mod flows;
mod gate;
mod include;
mod keys;
mod lists;
mod metrics_server;
mod namespaces;
mod openapi;
mod options;
mod problems;
mod rates;
mod reader;
mod reply;
mod rotas;
mod route;
mod routes;
mod serve;
mod server;
mod settled;
mod sse;
mod table;
mod tls;
mod token;
mod trace;
mod wait;
mod wire;

pub use api::Api;
pub use metrics_server::MetricsServer;
pub use openapi::document as openapi;
pub use options::ServerOptions;
pub use server::{BindError, Server};
pub use table::served;
pub use tls::TlsError;
pub use token::{ApiToken, ApiTokenError};
