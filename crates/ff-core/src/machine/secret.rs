//! The rules of the keyring.

use super::Facts;
use super::draft::Halt;
use super::step::{Changes, Step};
use crate::operation::{RotateSecret, Rotated, SeedSecret, Settled};
use crate::time::TimestampMs;
use crate::token::{Keyring, Seeded};

pub(super) fn seed(facts: &impl Facts, op: &SeedSecret) -> Result<Step<Settled>, Halt> {
    let keyring = facts.keyring()?;
    match Keyring::seed(Some(&keyring), op.kid.clone(), op.secret.clone())? {
        Seeded::AlreadySeeded => Ok(Step::unchanged(Settled::AlreadySatisfied)),
        Seeded::Seeded(keyring) => Ok(Step::done(Settled::Done, of(keyring))),
    }
}

pub(super) fn rotate(
    facts: &impl Facts,
    op: &RotateSecret,
    now: TimestampMs,
) -> Result<Step<Rotated>, Halt> {
    let keyring = facts.keyring()?;
    let current_kid = op.kid.clone();
    match keyring.rotate(op.kid.clone(), op.secret.clone(), op.grace_ms, now)? {
        None => Ok(Step::unchanged(Rotated { current_kid, rotated: false })),
        Some(keyring) => Ok(Step::done(Rotated { current_kid, rotated: true }, of(keyring))),
    }
}

fn of(keyring: Keyring) -> Changes {
    Changes { keyring: Some(keyring.into()), ..Changes::default() }
}
