//! The HTTP server: every route of the API over any store.
//!
//! One table of routes ([`routes`]) says for each its method, path, scope, body and forms; routing,
//! limits and the OpenAPI description all read it. A request passes [`serve`], which checks what all
//! routes share, and comes to its handler as a [`call::Call`]. Every failure leaves through
//! [`failure`], as a problem document.
//!
//! [`Api`] is the whole as a service, callable in process; [`Server`] puts it behind a socket.

mod api;
mod app;
mod body;
mod call;
mod connection;
mod failure;
mod gate;
mod include;
mod namespaces;
mod openapi;
mod options;
mod problems;
mod reply;
mod rotas;
mod route;
mod routes;
mod serve;
mod server;
mod settled;
mod sse;
mod table;
mod trace;
mod wait;
mod wire;

pub use api::Api;
pub use openapi::document as openapi;
pub use options::ServerOptions;
pub use server::{BindError, Server};
pub use table::served;
