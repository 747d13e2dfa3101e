//! Derives again what records decide by themselves.

use std::sync::Arc;

use ff_core::error::EngineError;
use ff_core::id::Subject;
use ff_core::read::Repaired;

use crate::audit::{Findings, Places, audit};
use crate::commit::{self, Committed};
use crate::item::{Bundle, relist, relist_document};
use crate::store::Shared;
use crate::{homes, lane_counts, read};

/// Tries for one record that others keep changing.
const TRIES: usize = 20;

/// Each record is a commit of its own, which rests on its being as it was read.
pub(crate) async fn repair(shared: &Arc<Shared>) -> Result<Repaired, EngineError> {
    let Findings { audited: found, mislisted, unfound, uncounted } = audit(shared).await?;
    if mislisted.is_empty() && unfound.is_empty() && uncounted.is_empty() {
        return Ok(Repaired { left: found.clone(), found });
    }
    for home in &unfound {
        homes::enter(shared, home).await?;
    }
    for (subject, places) in mislisted {
        mend(shared, &subject, &places).await?;
    }
    lane_counts::mend(shared, &uncounted).await?;
    shared.passed.forget();
    let left = audit(shared).await?.audited;
    Ok(Repaired { found, left })
}

/// Lists one record as it says itself, and takes it out of these places; whether that was done.
pub(crate) async fn mend(
    shared: &Arc<Shared>,
    subject: &Subject,
    places: &Places,
) -> Result<bool, EngineError> {
    for _ in 0..TRIES {
        let bundle = mended(shared, subject, places).await?;
        let groups = vec![Arc::clone(&bundle.group)];
        let outcome = commit::send(shared, groups, true).await?.pop();
        if let Some(Committed::Done(numbers)) = outcome {
            shared.committed(bundle, &numbers);
            return Ok(true);
        }
    }
    Ok(false)
}

async fn mended(
    shared: &Shared,
    subject: &Subject,
    places: &Places,
) -> Result<Bundle, EngineError> {
    match subject {
        Subject::Execution(id) => {
            let (now, mut entries) = read::executions(shared, id.partition(), &[*id]).await?;
            let entry = entries.pop().flatten().map(Arc::new);
            relist(shared, *id, entry.as_ref(), places, now)
        }
        Subject::Document(id) => {
            let ids = std::slice::from_ref(id);
            let (now, mut found) = read::documents(shared, &id.home, ids).await?;
            let found = found.pop().flatten().map(|(document, _)| Arc::new(document));
            relist_document(shared, id, found.as_ref(), places, now)
        }
    }
}
