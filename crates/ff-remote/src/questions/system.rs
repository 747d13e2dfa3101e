//! Namespaces, the keys of waitpoint tokens, and the soundness of the store.

use std::time::Duration;

use ff_api::lane::NamespaceRow;
use ff_api::reading::Unreadable;
use ff_api::secret::Kids as KidsForm;
use ff_api::system::{AuditReport, RunAudit};
use ff_core::read::{
    Audit, Audited, DescribeNamespace, Kids, ListKids, NamespaceSnapshot, Violation,
};

use crate::exchange::Exchange;
use crate::http::Request;
use crate::link::{Link, of, path};
use crate::operations::Asked;

/// An audit walks the whole store.
const AUDIT: Duration = Duration::from_secs(600);

/// The invariants by name, as `docs/reference/invariants.md` numbers them.
const INVARIANTS: [&str; 36] = [
    "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I15",
    "I16", "I17", "I18", "I19", "I20", "I21", "I22", "I23", "I24", "I25", "I26", "I27", "I28",
    "I29", "I30", "I31", "I32", "I33", "I34", "I35", "I36",
];

pub(crate) fn namespace(_: &Link, question: &DescribeNamespace) -> Asked<Box<NamespaceSnapshot>> {
    let request = Request::get(of("namespaces", &question.namespace, "")?);
    Ok(Exchange::form(request, |form: NamespaceRow, _| Ok(Box::new(form.into()))))
}

pub(crate) fn kids(_: &Link, ListKids: ListKids) -> Asked<Kids> {
    Ok(Exchange::plain::<KidsForm>(Request::get(path(&["admin", "waitpoint-kids"])?)))
}

/// The server audits its store: the key needs the scope `admin` for it.
pub(crate) fn audit(_: &Link, Audit: Audit) -> Asked<Audited> {
    let request = Request::post(path(&["system", "audit"])?, &RunAudit { repair: false });
    let request = request.asking().lasting(AUDIT);
    Ok(Exchange::form(request, |form: AuditReport, _| {
        let violation = |found: ff_api::system::Violation| {
            let named = INVARIANTS.into_iter().find(|known| *known == found.invariant);
            let invariant = named.ok_or_else(|| Unreadable::new("invariant", &found.invariant))?;
            Ok::<_, Unreadable>(Violation {
                invariant,
                subject: found.subject,
                detail: found.detail,
            })
        };
        let violations = form.violations.into_iter().map(violation);
        Ok(Audited { checked: form.checked, violations: violations.collect::<Result<_, _>>()? })
    }))
}
