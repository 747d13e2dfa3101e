//! The same step on many executions: what is wrong with one of them holds up none of the others.

use crate::backend::Backend;
use crate::error::EngineError;
use crate::id::ExecutionId;
use crate::operation::{Command, Reply};

/// What came of a step on many.
#[derive(Debug, Default)]
pub struct Each {
    /// On how many it was carried out.
    pub done: u32,
    /// How many refused it: mostly, somebody else was faster.
    pub refused: u32,
    pub broken: Vec<Broken>,
}

/// An execution that cannot be read, or is not sound. It was passed over.
#[derive(Debug, Clone, PartialEq)]
pub struct Broken {
    pub execution_id: ExecutionId,
    pub error: EngineError,
}

impl Each {
    /// How many were.
    pub fn passed_over(&self) -> u32 {
        u32::try_from(self.broken.len()).unwrap_or(u32::MAX)
    }

    pub fn has_broken(&self, id: ExecutionId) -> bool {
        self.broken.iter().any(|broken| broken.execution_id == id)
    }

    pub fn add(&mut self, other: Self) {
        self.done += other.done;
        self.refused += other.refused;
        self.broken.extend(other.broken);
    }
}

/// Carries out all of these; `counts` tells which replies say that something was done. When the store
/// does not answer, some may be left.
pub async fn each<B: Backend + ?Sized>(
    backend: &B,
    commands: Vec<Command>,
    counts: impl Fn(&Reply) -> bool,
) -> Result<Each, EngineError> {
    let mut each = Each::default();
    if commands.is_empty() {
        return Ok(each);
    }
    let ids: Vec<_> = commands.iter().map(Command::execution_id).collect();
    for (id, reply) in ids.into_iter().zip(backend.apply(commands).await) {
        match (reply, id) {
            (Ok(reply), _) => each.done += u32::from(counts(&reply)),
            (Err(error), _) if error.refusal().is_some() => each.refused += 1,
            (Err(error), Some(execution_id)) if error.is_bug() => {
                each.broken.push(Broken { execution_id, error });
            }
            (Err(error), _) => return Err(error),
        }
    }
    Ok(each)
}
