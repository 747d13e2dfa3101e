//! Waitpoint tokens: what a caller shows to deliver a signal, and the keyring behind them.
//!
//! A token is the text `kid:expiry:signature`. The signature binds it to one execution, one
//! waitpoint, the number of its issue and its expiry, so a token is checked by making it anew; a
//! store keeps only its SHA-256. Owned here: keys and their rotation, signing, checking. Not owned:
//! where the keyring is stored and how its copies are refreshed, and where random bytes come from.
//!
//! Neither a secret nor a token's text gets into `Debug`, `Display` or a refusal.

mod check;
mod hash;
mod hex;
mod keyring;
mod secret;
mod sign;
mod waitpoint_token;

pub use check::{Stamp, check, check_unknown};
pub use hash::TokenHash;
pub use keyring::{Keyring, KidInfo, Reconciled, Seeded};
pub use secret::Secret;
pub use sign::{Binding, Signed, sign, sign_again, sign_with};
pub use waitpoint_token::WaitpointToken;
