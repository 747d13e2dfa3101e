//! What a step in one home means for another.

use ff_core::backend::Backend;
use ff_core::each::{Broken, Each};
use ff_core::errand;
use ff_core::error::EngineError;
use ff_core::operation::Errand;

use super::budget::{admit, enforce};
use super::bulk::carry_on;
use super::leave::take_leases;

/// Carries out one errand, whatever it takes, and what its own steps mean elsewhere: a slot that was
/// given back is not waited for until somebody makes the next call. Tells which executions it passed over
/// because they are broken; an error means that a part of it is left.
pub async fn carry_out(backend: &dyn Backend, errand: &Errand) -> Result<Vec<Broken>, EngineError> {
    let done = carry_out_alone(backend, errand).await;
    errand::carry_out_noted(backend).await;
    done
}

async fn carry_out_alone(
    backend: &dyn Backend,
    errand: &Errand,
) -> Result<Vec<Broken>, EngineError> {
    let each = match errand {
        Errand::TakeLeases(lost) => take_leases(backend, lost).await?,
        Errand::Admit { budget_id, namespace, since } => {
            admit(backend, *budget_id, namespace, *since).await?
        }
        Errand::Enforce { budget_id, namespace, action, since } => {
            enforce(backend, (*budget_id, *action), namespace, *since).await?
        }
        Errand::CarryOn { bulk_id } => carry_on(backend, *bulk_id).await?,
        prompt => {
            errand::carry_out(backend, prompt).await?;
            Each::default()
        }
    };
    Ok(each.broken)
}
