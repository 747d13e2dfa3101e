//! Capabilities: a worker gets only what its set covers.

use ff_core::capability::Capabilities;
use ff_core::error::Code;
use ff_core::id::ExecutionId;
use ff_core::limits;
use ff_core::operation::{Claim, Submit};
use ff_core::policy::Policy;

use crate::world::{World, capabilities};

fn requiring(world: &World, tokens: &[&str]) -> Submit {
    let required_capabilities = capabilities(tokens);
    Submit { policy: Policy { required_capabilities, ..Policy::default() }.into(), ..world.work() }
}

async fn claim_with(world: &World, tokens: &[&str]) -> Vec<ExecutionId> {
    claim_some(world, tokens, 100).await
}

async fn claim_some(world: &World, tokens: &[&str], max: u32) -> Vec<ExecutionId> {
    let claim = Claim { capabilities: capabilities(tokens), ..world.claim_request(max) };
    world.claim_as(claim).await.iter().map(|task| task.execution_id).collect()
}

pub async fn a_worker_needs_every_required_token(world: &World) {
    let id = world.submit(requiring(world, &["gpu", "eu"])).await;
    let lacking: [&[&str]; 3] = [&[], &["gpu"], &["eu", "us"]];
    for offered in lacking {
        assert_eq!(claim_with(world, offered).await, [], "{offered:?}");
    }
    assert_eq!(claim_with(world, &["a", "eu", "gpu", "z"]).await, [id]);
}

pub async fn tokens_are_case_sensitive(world: &World) {
    let lower = world.submit(requiring(world, &["gpu"])).await;
    let upper = world.submit(requiring(world, &["GPU"])).await;
    assert_eq!(claim_with(world, &["Gpu"]).await, []);
    assert_eq!(claim_with(world, &["gpu"]).await, [lower]);
    assert_eq!(claim_with(world, &["GPU"]).await, [upper]);
}

pub async fn a_token_is_not_covered_by_a_longer_one(world: &World) {
    let id = world.submit(requiring(world, &["cuda"])).await;
    assert_eq!(claim_with(world, &["cuda12", "cud", "ücuda"]).await, []);
    assert_eq!(claim_with(world, &["cuda"]).await, [id]);
}

pub async fn tokens_are_a_set(world: &World) {
    let id = world.submit(requiring(world, &["b", "ü", "a", "b"])).await;
    assert_eq!(world.describe(id).await.required_capabilities.as_csv(), "a,b,ü");
    assert_eq!(claim_with(world, &["ü", "a", "b"]).await, [id]);
}

pub async fn a_claim_passes_over_what_it_cannot_run_and_leaves_it_alone(world: &World) {
    let mut before = Vec::new();
    for n in 0..60 {
        let token = format!("special-{}", n % 3);
        let submit = Submit { priority: 100, ..requiring(world, &[token.as_str()]) };
        let id = world.submit(submit).await;
        before.push(world.describe(id).await);
    }
    let plain = world.submit(world.work()).await;
    assert_eq!(claim_with(world, &["other"]).await, [plain]);
    for record in before {
        assert_eq!(world.describe(record.execution_id).await, record);
    }
}

pub async fn order_holds_across_sets_of_capabilities(world: &World) {
    let sets: [&[&str]; 4] = [&["gpu"], &[], &["gpu", "eu"], &["eu"]];
    let mut by_priority = Vec::new();
    for (priority, tokens) in sets.iter().cycle().take(12).enumerate() {
        let submit = Submit { priority: priority as i64, ..requiring(world, tokens) };
        by_priority.insert(0, world.submit(submit).await);
    }
    // By pieces: the best of all sets comes first even if only one is asked for.
    let mut claimed = Vec::new();
    for max in [1, 1, 3, 100] {
        claimed.extend(claim_some(world, &["eu", "gpu"], max).await);
    }
    assert_eq!(claimed, by_priority);
}

pub async fn malformed_sets_are_named(world: &World) {
    let many = |n: usize| (0..n).map(|n| n.to_string()).collect::<Vec<_>>();
    let long = |bytes: usize| vec!["x".repeat(bytes)];
    let bad = [
        (vec![String::new()], "empty_token"),
        (vec!["a,b".to_owned()], "comma_in_token"),
        (vec!["a b".to_owned()], "control_or_whitespace"),
        (vec!["a\u{7f}".to_owned()], "control_or_whitespace"),
        (many(limits::CAPS_MAX_TOKENS + 1), "too_many_tokens"),
        (long(limits::CAPS_MAX_BYTES + 1), "too_many_bytes"),
    ];
    for (tokens, detail) in bad {
        let refusal = Capabilities::new(tokens).unwrap_err();
        assert_eq!((refusal.code, &*refusal.detail), (Code::InvalidCapabilities, detail));
    }
    let required = [(r#""gpu""#, "required:not_array"), ("[1]", "non_string_token")];
    for (json, detail) in required {
        let policy = format!(r#"{{"routing_requirements":{{"required_capabilities":{json}}}}}"#);
        let refusal = Policy::from_json(&policy).unwrap_err();
        assert_eq!((refusal.code, &*refusal.detail), (Code::InvalidCapabilities, detail));
    }
    for tokens in [many(limits::CAPS_MAX_TOKENS), long(limits::CAPS_MAX_BYTES)] {
        let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
        let id = world.submit(requiring(world, &tokens)).await;
        assert_eq!(claim_with(world, &tokens).await, [id]);
    }
}
