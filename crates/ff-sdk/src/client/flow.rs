//! A graph of work, written as it reads.

use std::collections::BTreeMap;
use std::time::Duration;

use ff_core::id::{
    BudgetId, ExecutionId, FlowId, IdempotencyKey, MemberName, Namespace, QuotaPolicyId,
};
use ff_core::operation::{
    CreateFlow, GraphEdge, GraphGroup, GraphMember, Operation as _, SubmitFlow,
};
use ff_core::partition::PartitionConfig;
use ff_core::state::{Attached, EdgeKind, Join, OnSatisfied};
use ff_core::time::TimestampMs;
use uuid::Uuid;

use super::Submission;
use super::manage::read_tags;
use crate::config::parse;
use crate::error::SdkError;
use crate::presence::millis;

/// Steps and what each of them waits for. What follows a [`Flow::step`] is about that step.
///
/// ```
/// use ff_sdk::{Flow, Submission};
///
/// let media = Flow::new("media")
///     .step("probe", Submission::new("probe").payload("film.mov"))
///     .step("video", Submission::new("encode")).after("probe")
///     .step("sound", Submission::new("encode")).after("probe")
///     .step("publish", Submission::new("publish")).all_of(["video", "sound"])
///     .step("tidy", Submission::new("tidy")).after_end_of("publish");
///
/// let race = Flow::new("race")
///     .step("large", Submission::new("ask"))
///     .step("small", Submission::new("ask"))
///     .step("answer", Submission::new("answer")).any_of(["large", "small"]).cancel_remaining();
/// ```
///
/// A step finds the results of those that it waited for in its task's inputs, by their names, or
/// by the name that [`Flow::input_as`] gives. With [`Flow::as_payload`] the result becomes its
/// payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    kind: String,
    tags: BTreeMap<String, String>,
    idempotency_key: Option<String>,
    retention: Option<Duration>,
    attached: Attached,
    steps: Vec<Step>,
    edges: Vec<Edge>,
    /// The first thing that was said where it means nothing.
    problem: Option<SdkError>,
}

#[derive(Debug, Clone, PartialEq)]
struct Step {
    name: String,
    submission: Submission,
    join: Option<Join>,
}

#[derive(Debug, Clone, PartialEq)]
struct Edge {
    from: String,
    to: String,
    kind: EdgeKind,
    name: Option<String>,
    becomes_payload: bool,
}

impl Flow {
    /// A flow of this kind, without steps.
    ///
    /// ```
    /// use ff_sdk::{Flow, Submission};
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// ```
    pub fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            tags: BTreeMap::new(),
            idempotency_key: None,
            retention: None,
            attached: Attached::default(),
            steps: Vec::new(),
            edges: Vec::new(),
            problem: None,
        }
    }

    /// Adds a tag to the flow.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow.tag("tenant", "acme")).await?;
    /// assert_eq!(flow.describe().await?.tags.get("tenant"), Some("acme"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(key.into(), value.into());
        self
    }

    /// The same key and the same graph again find the flow of the first submit.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = flow.idempotency_key("report-of-may");
    /// let first = client.submit_flow(flow.clone()).await?;
    /// let again = client.submit_flow(flow).await?;
    /// assert!(again.was_there_already() && again.id() == first.id());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn idempotency_key(self, key: impl Into<String>) -> Self {
        Self { idempotency_key: Some(key.into()), ..self }
    }

    /// How long the flow is kept once it has ended; a day unless said.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    /// use std::time::Duration;
    ///
    /// let flow = Flow::new("report").step("fetch", Submission::new("fetch"));
    /// let flow = client.submit_flow(flow.retention(Duration::from_secs(3600))).await?;
    /// assert_eq!(flow.describe().await?.retention_ms, 3_600_000);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn retention(self, retention: Duration) -> Self {
        Self { retention: Some(retention), ..self }
    }

    /// What all steps use counts in this budget.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::{Flow, NewBudget};
    ///
    /// let budget = client.create_budget(NewBudget::new("tokens").limit("tokens", 100)).await?;
    /// let flow = Flow::new("report").budget(budget).step("ask", Submission::new("ask"));
    /// let flow = client.submit_flow(flow).await?;
    /// assert_eq!(flow.describe().await?.attached.budget_ids, [budget]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn budget(mut self, budget_id: BudgetId) -> Self {
        self.attached.add([budget_id]);
        self
    }

    /// Each step needs a slot of this quota policy to run.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_core::state::QuotaSpec;
    /// use ff_sdk::Flow;
    ///
    /// # let spec = QuotaSpec {
    /// #     window_seconds: 0, max_requests_per_window: 0, max_concurrent: 2, jitter_ms: 0,
    /// # };
    /// let two_at_a_time = client.create_quota_policy(spec).await?;
    /// let flow = Flow::new("report").quota(two_at_a_time).step("ask", Submission::new("ask"));
    /// let flow = client.submit_flow(flow).await?;
    /// assert_eq!(flow.describe().await?.attached.quota_policy_id, Some(two_at_a_time));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn quota(mut self, quota_policy_id: QuotaPolicyId) -> Self {
        self.attached.quota_policy_id = Some(quota_policy_id);
        self
    }

    /// Adds a step. Without a word on what it waits for it starts at once.
    ///
    /// ```
    /// # use ff_sdk::{Submission, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = TestEngine::start().await.client();
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report")
    ///     .step("fetch", Submission::new("fetch"))
    ///     .step("print", Submission::new("print")).after("fetch");
    /// let flow = client.submit_flow(flow).await?;
    /// let print = flow.step("print").expect("a step of this name");
    /// assert_eq!(print.explain().await?.cause.as_str(), "dependencies");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn step(mut self, name: impl Into<String>, submission: Submission) -> Self {
        self.steps.push(Step { name: name.into(), submission, join: None });
        self
    }

    /// The step waits for the success of another.
    ///
    /// Said several times, it waits for all of them. Should one of them end in another way, the
    /// step is skipped.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_core::state::Outcome;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report")
    ///     .step("fetch", Submission::new("fetch"))
    ///     .step("print", Submission::new("print")).after("fetch");
    /// let flow = engine.client().submit_flow(flow).await?;
    /// worker.claim_next().await?.expect("fetch").fail("gone", "permanent").await?;
    /// let print = flow.step("print").expect("a step").id();
    /// engine.assert_outcome(print, Outcome::Skipped).await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn after(self, step: impl Into<String>) -> Self {
        self.edge(step, EdgeKind::SuccessOnly)
    }

    /// The step waits for the end of another, however that is.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report")
    ///     .step("print", Submission::new("print"))
    ///     .step("tidy", Submission::new("tidy")).after_end_of("print");
    /// engine.client().submit_flow(flow).await?;
    /// worker.claim_next().await?.expect("print").fail("no paper", "permanent").await?;
    /// worker.claim_next().await?.expect("tidy").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn after_end_of(self, step: impl Into<String>) -> Self {
        self.edge(step, EdgeKind::Always)
    }

    /// The step runs only if another fails or expires; else it is skipped.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report")
    ///     .step("print", Submission::new("print"))
    ///     .step("excuse", Submission::new("mail")).after_failure_of("print");
    /// engine.client().submit_flow(flow).await?;
    /// worker.claim_next().await?.expect("print").fail("no paper", "permanent").await?;
    /// worker.claim_next().await?.expect("excuse").complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn after_failure_of(self, step: impl Into<String>) -> Self {
        self.edge(step, EdgeKind::FailureOnly)
    }

    /// The step waits for the success of all of these.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("film")
    ///     .step("video", Submission::new("encode"))
    ///     .step("sound", Submission::new("encode"))
    ///     .step("join", Submission::new("join")).all_of(["video", "sound"]);
    /// let flow = engine.client().submit_flow(flow).await?;
    /// for _ in 0..2 {
    ///     worker.claim_next().await?.expect("a part").complete(None).await?;
    /// }
    /// let join = worker.claim_next().await?.expect("both are done");
    /// assert_eq!(Some(join.execution_id()), flow.step("join").map(|step| step.id()));
    /// # join.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn all_of<T: Into<String>>(self, steps: impl IntoIterator<Item = T>) -> Self {
        self.join(Join::AllOf, steps)
    }

    /// The step waits for the first success of these. The others are cancelled then, unless
    /// [`Self::let_run`] says otherwise.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_core::state::Outcome;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("race")
    ///     .step("large", Submission::new("ask"))
    ///     .step("small", Submission::new("ask"))
    ///     .step("answer", Submission::new("answer")).any_of(["large", "small"]);
    /// let flow = engine.client().submit_flow(flow).await?;
    /// worker.claim_next().await?.expect("large").complete(None).await?;
    /// engine.run_until_idle().await;
    /// let small = flow.step("small").expect("a step").id();
    /// engine.assert_outcome(small, Outcome::Cancelled).await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn any_of<T: Into<String>>(self, steps: impl IntoIterator<Item = T>) -> Self {
        self.join(Join::AnyOf(OnSatisfied::default()), steps)
    }

    /// The step waits for `k` successes of these; the others as with [`Self::any_of`].
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::Flow;
    ///
    /// let reviewers = ["ada", "grace", "edsger"];
    /// let flow = reviewers.iter().fold(Flow::new("paper"), |flow, name| {
    ///     flow.step(*name, Submission::new("review"))
    /// });
    /// let flow = flow.step("decide", Submission::new("decide")).quorum(2, reviewers);
    /// let flow = engine.client().submit_flow(flow).await?;
    /// for _ in 0..2 {
    ///     worker.claim_next().await?.expect("a review").complete(None).await?;
    /// }
    /// engine.run_until_idle().await;
    /// let decide = worker.claim_next().await?.expect("two are enough");
    /// assert_eq!(Some(decide.execution_id()), flow.step("decide").map(|step| step.id()));
    /// # decide.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn quorum<T: Into<String>>(self, k: u32, steps: impl IntoIterator<Item = T>) -> Self {
        self.join(Join::Quorum(k, OnSatisfied::default()), steps)
    }

    /// Those that are not needed any more are cancelled: after `any_of` and `quorum`, and as they
    /// do unless told otherwise.
    ///
    /// ```
    /// use ff_sdk::{Flow, Submission};
    ///
    /// let race = Flow::new("race")
    ///     .step("large", Submission::new("ask"))
    ///     .step("small", Submission::new("ask"))
    ///     .step("answer", Submission::new("answer")).any_of(["large", "small"])
    ///     .cancel_remaining();
    /// ```
    #[must_use]
    pub fn cancel_remaining(self) -> Self {
        self.remaining("cancel_remaining", OnSatisfied::CancelRemaining)
    }

    /// Those that are not needed any more run to their end.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_core::state::PublicState;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("race")
    ///     .step("large", Submission::new("ask"))
    ///     .step("small", Submission::new("ask"))
    ///     .step("answer", Submission::new("answer")).any_of(["large", "small"]).let_run();
    /// let flow = engine.client().submit_flow(flow).await?;
    /// worker.claim_next().await?.expect("large").complete(None).await?;
    /// let small = flow.step("small").expect("a step").id();
    /// engine.assert_state(small, PublicState::Waiting).await;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn let_run(self) -> Self {
        self.remaining("let_run", OnSatisfied::LetRun)
    }

    /// The name under which the step finds the result of the one that was named last.
    ///
    /// Without it that is the name of the step.
    ///
    /// ```
    /// use ff_sdk::{Flow, Submission};
    ///
    /// let flow = Flow::new("report")
    ///     .step("fetch", Submission::new("fetch"))
    ///     .step("print", Submission::new("print")).after("fetch").input_as("page");
    /// ```
    #[must_use]
    pub fn input_as(self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.last_edge("input_as", |edge| edge.name = Some(name))
    }

    /// The result of the step that was named last becomes the payload of this one.
    ///
    /// ```
    /// # use ff_sdk::{Submission, WorkerConfig, testing::TestEngine};
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let engine = TestEngine::start().await;
    /// # let worker = engine.worker(WorkerConfig::new("w")).await;
    /// use ff_sdk::Flow;
    ///
    /// let flow = Flow::new("report")
    ///     .step("fetch", Submission::new("fetch"))
    ///     .step("print", Submission::new("print")).after("fetch").as_payload();
    /// engine.client().submit_flow(flow).await?;
    /// worker.claim_next().await?.expect("fetch").complete(Some("a page".into())).await?;
    /// let print = worker.claim_next().await?.expect("print");
    /// assert_eq!(&print.input_payload()[..], b"a page");
    /// # print.complete(None).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn as_payload(self) -> Self {
        self.last_edge("as_payload", |edge| edge.becomes_payload = true)
    }

    fn edge(mut self, from: impl Into<String>, kind: EdgeKind) -> Self {
        let from = from.into();
        let Some(step) = self.steps.last() else {
            return self.misplaced("after", "what waits is named first, by step()");
        };
        let to = step.name.clone();
        self.edges.push(Edge { from, to, kind, name: None, becomes_payload: false });
        self
    }

    fn join<T: Into<String>>(mut self, join: Join, steps: impl IntoIterator<Item = T>) -> Self {
        match self.steps.last_mut() {
            Some(Step { join: given @ None, .. }) => *given = Some(join),
            Some(_) => return self.misplaced("groups", "a step has one rule for all it waits for"),
            None => return self.misplaced("groups", "what waits is named first, by step()"),
        }
        steps.into_iter().fold(self, Self::after)
    }

    fn remaining(mut self, said: &'static str, on_satisfied: OnSatisfied) -> Self {
        match self.steps.last_mut().and_then(|step| step.join.as_mut()) {
            Some(Join::AnyOf(then) | Join::Quorum(_, then)) => {
                *then = on_satisfied;
                self
            }
            _ => self.misplaced(said, "only any_of() and quorum() leave some over"),
        }
    }

    fn last_edge(mut self, said: &'static str, change: impl FnOnce(&mut Edge)) -> Self {
        let of_step = self.steps.last().map(|step| step.name.as_str());
        match self.edges.last_mut().filter(|edge| of_step == Some(edge.to.as_str())) {
            Some(edge) => {
                change(edge);
                self
            }
            None => self.misplaced(said, "it is said of a step that this one waits for"),
        }
    }

    fn misplaced(mut self, field: &'static str, message: &str) -> Self {
        self.problem.get_or_insert_with(|| SdkError::config(field, message));
        self
    }

    pub(super) fn needs_clock(&self) -> bool {
        self.steps.iter().any(|step| step.submission.needs_clock())
    }

    /// The operation, found sound: names, rules and that nothing waits for itself.
    pub(super) fn operation(
        self,
        namespace: &Namespace,
        partitions: &PartitionConfig,
        now: TimestampMs,
    ) -> Result<SubmitFlow, SdkError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let key = self.idempotency_key.as_deref();
        let key = key.map(|key| parse::<IdempotencyKey>("idempotency_key", key)).transpose()?;
        let flow_id = key.map_or_else(FlowId::mint, |key| FlowId::for_key(namespace, &key));
        let flow = CreateFlow {
            namespace: namespace.clone(),
            tags: read_tags(self.tags)?,
            retention_ms: self.retention.map(millis),
            attached: self.attached,
            ..CreateFlow::new(flow_id, parse("kind", &self.kind)?)
        };
        let (mut members, mut groups) = (Vec::new(), Vec::new());
        for Step { name, submission, join } in self.steps {
            let member: MemberName = parse("steps", &name)?;
            groups.extend(join.map(|join| GraphGroup { member: member.clone(), join }));
            let id = ExecutionId::for_flow(Uuid::now_v7(), flow_id, partitions);
            let submit = submission.operation(id, namespace, now);
            let submit = submit.map_err(|error| of_step(&name, error))?;
            members.push(GraphMember { name: member, submit });
        }
        let edges = self.edges.into_iter().map(Edge::by_name).collect::<Result<_, _>>()?;
        let edge_seed = Uuid::now_v7();
        let graph = SubmitFlow { flow, members, edges, groups, edge_seed };
        graph.check().map_err(SdkError::unsent)?;
        Ok(graph)
    }
}

impl Edge {
    fn by_name(self) -> Result<GraphEdge, SdkError> {
        Ok(GraphEdge {
            from: parse("after", &self.from)?,
            to: parse("steps", &self.to)?,
            kind: self.kind,
            name: self.name,
            data_passing_ref: self.becomes_payload.then(|| "result".to_owned()),
        })
    }
}

/// Tells the step whose submission is wrong.
fn of_step(name: &str, error: SdkError) -> SdkError {
    match error {
        SdkError::Config { field, message, .. } => {
            SdkError::config(field, format!("step {name:?}: {message}"))
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use ff_core::error::Code;

    use super::*;

    fn work() -> Submission {
        Submission::new("work")
    }

    fn checked(flow: Flow) -> Result<SubmitFlow, SdkError> {
        let partitions = PartitionConfig::default();
        flow.operation(&Namespace::default(), &partitions, TimestampMs(0))
    }

    #[test]
    fn a_graph_is_what_was_said() {
        let flow = Flow::new("race")
            .step("a", work())
            .step("b", work())
            .after_end_of("a")
            .step("c", work())
            .quorum(1, ["a", "b"])
            .let_run()
            .step("d", work())
            .after("c")
            .input_as("won")
            .as_payload();
        let graph = checked(flow).unwrap();
        let edges = graph.edges.iter();
        let edges: Vec<_> = edges.map(|e| (e.from.as_str(), e.to.as_str(), e.kind)).collect();
        let kind = EdgeKind::SuccessOnly;
        let expected =
            [("a", "b", EdgeKind::Always), ("a", "c", kind), ("b", "c", kind), ("c", "d", kind)];
        assert_eq!(edges, expected);
        assert_eq!(graph.edges[3].name.as_deref(), Some("won"));
        assert!(graph.edges[3].data_passing_ref.is_some());
        assert_eq!(graph.groups.len(), 1);
        assert_eq!(graph.groups[0].join, Join::Quorum(1, OnSatisfied::LetRun));
    }

    #[test]
    fn what_is_no_graph_is_refused_by_its_code() {
        let two = || Flow::new("two").step("a", work()).step("b", work());
        let cases = [
            (two().after("nobody"), Code::ExecutionNotInFlow),
            (two().after("b"), Code::SelfReferencingEdge),
            (two().after("a").after("a"), Code::DependencyAlreadyExists),
            (two().after("c").step("c", work()).after("b"), Code::CycleDetected),
            (two().step("a", work()), Code::InvalidInput),
            (Flow::new("none"), Code::InvalidInput),
            (two().after("a").as_payload().step("c", work()).input_as("x"), Code::InvalidInput),
        ];
        for (flow, code) in cases {
            let refused = checked(flow.clone()).unwrap_err();
            assert_eq!(refused.code(), Some(code), "{flow:?}: {refused}");
        }
    }

    #[test]
    fn what_is_said_in_the_wrong_place_is_told_by_its_name() {
        let one = || Flow::new("one").step("a", work());
        let cases = [
            (Flow::new("one").after("a"), "after"),
            (one().cancel_remaining(), "cancel_remaining"),
            (one().step("b", work()).all_of(["a"]).let_run(), "let_run"),
            (one().step("b", work()).any_of(["a"]).all_of(["a"]), "groups"),
            (one().as_payload(), "as_payload"),
            (one().step("b", work().lane("")), "lane"),
            (one().step("", work()), "steps"),
        ];
        for (flow, expected) in cases {
            let refused = checked(flow.clone()).unwrap_err();
            let SdkError::Config { field, .. } = refused else { panic!("{flow:?}: {refused}") };
            assert_eq!(field, expected, "{flow:?}");
        }
    }
}
