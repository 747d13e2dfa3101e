//! Who may call `ff server`, and how.

use std::path::PathBuf;

use clap::Args;
use ff_server::{ApiToken, ApiTokenError, ServerOptions};

/// Keys, certificates and pages of other sites.
#[derive(Args)]
pub(crate) struct Security {
    /// One key with every scope, namespace and lane; 16 bytes at least. Better in the environment
    /// than on the command line, where others see it
    #[arg(long, value_name = "TOKEN", env = "FF_API_TOKEN", hide_env_values = true)]
    api_token: Option<String>,

    /// Certificate chain, PEM; with --tls-key the server speaks TLS
    #[arg(long, value_name = "FILE", env = "FF_SERVER_TLS_CERT")]
    tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", env = "FF_SERVER_TLS_KEY")]
    tls_key: Option<PathBuf>,

    /// Only clients with a certificate signed by one of these connect, PEM
    #[arg(long, value_name = "FILE", env = "FF_SERVER_CLIENT_CA")]
    client_ca: Option<PathBuf>,

    /// Origins of pages that may call, as https://a.example; * for all
    #[arg(long, value_name = "ORIGIN", env = "FF_CORS_ORIGINS", value_delimiter = ',')]
    cors_origins: Vec<String>,

    /// Signals need the token of their waitpoint and no key
    #[arg(long, env = "FF_SERVER_PUBLIC_SIGNALS")]
    public_signals: bool,

    /// Requests of one key in a second
    #[arg(
        long,
        value_name = "N",
        env = "FF_SERVER_REQUESTS_PER_SECOND_PER_KEY",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    requests_per_second_per_key: Option<u32>,
}

impl Security {
    /// Puts these settings into those of the server.
    pub(crate) fn add_to(self, options: &mut ServerOptions) -> Result<(), ApiTokenError> {
        let token = self.api_token.filter(|token| !token.is_empty());
        options.api_token = token.map(|token| ApiToken::new(&token)).transpose()?;
        options.tls_cert = self.tls_cert;
        options.tls_key = self.tls_key;
        options.client_ca = self.client_ca;
        // A variable that is set to nothing lists none.
        options.cors_origins = self.cors_origins;
        options.cors_origins.retain(|origin| !origin.is_empty());
        options.public_signals = self.public_signals;
        options.requests_per_second_per_key = self.requests_per_second_per_key;
        Ok(())
    }
}
