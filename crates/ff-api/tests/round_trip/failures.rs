//! Failures on their way to a client.

use ff_api::problem::{Problem, code_of};
use ff_core::capability::Capabilities;
use ff_core::error::{Class, Code, Current, EngineError, Refusal};
use ff_core::id::AttemptId;
use ff_core::state::{LifecyclePhase, Outcome};

use super::over;

fn back(error: &EngineError) -> EngineError {
    over(&Problem::from(error)).into()
}

#[test]
fn every_refusal_comes_back_as_it_is() {
    let told = [Class::Bug, Class::Retryable];
    for &code in Code::ALL.iter().filter(|code| !told.contains(&code.class())) {
        let refusal = Refusal {
            current: Some(Box::new(Current {
                terminal_outcome: Some(Outcome::Failed),
                lease_epoch: 4,
                phase: LifecyclePhase::Terminal,
                attempt_id: Some(AttemptId::mint()),
            })),
            missing_capabilities: Some(Capabilities::new(["gpu"]).unwrap()),
            ..Refusal::new(code, "it is so")
        };
        let error = EngineError::from(refusal);
        assert_eq!(back(&error), error, "{code}");
    }
    for refusal in [
        Refusal::invalid("max", "too many"),
        Refusal::invalid("max", "too many").under("next"),
        Refusal::invalid("weight", "none").under(1).under("lanes"),
    ] {
        let error = EngineError::from(refusal);
        assert_eq!(back(&error), error, "a field of the input is named");
    }
}

#[test]
fn every_fault_comes_back_with_its_code() {
    let detail = || "the store is away".to_owned();
    for error in [
        EngineError::Unavailable { detail: detail() },
        EngineError::Timeout { detail: detail() },
        EngineError::Transport { outcome_unknown: true, detail: detail() },
    ] {
        assert_eq!(back(&error), error);
    }
    for &code in Code::ALL.iter().filter(|code| code.class() == Class::Retryable) {
        let error = EngineError::from(Refusal::new(code, "later"));
        assert_eq!((back(&error).code(), back(&error).is_retryable()), (code, true));
    }
    let bug = EngineError::bug("a secret of the inside");
    assert_eq!(back(&bug).code(), Code::Internal);
    assert!(!back(&bug).to_string().contains("inside"), "what went wrong stays in the log");
}

#[test]
fn a_code_of_a_later_version_is_read_by_its_status() {
    let told = r#"{"status":409,"code":"made_up_later","detail":"so it is"}"#;
    let error = EngineError::from(serde_json::from_str::<Problem>(told).unwrap());
    assert_eq!(error.code(), code_of(409));
    assert!(error.to_string().contains("made_up_later: so it is"), "{error}");
}
