//! A deploy that waits for two of three people, and for the tests: whichever comes last starts it.

use anyhow::{Context as _, Result};
use clap::Parser as _;
use flowfabric::core::event::EventKind;
use flowfabric::core::read::EventFilter;
use flowfabric::runtime::{Data, Failure, Outcome, Payload, Task, TaskInfo};
use flowfabric::{
    Client, Execution, Signal, SignalOutcome, Submission, Suspension, TimeoutBehavior,
    WaitpointTicket, WorkerConfig, WorkerRuntime,
};
use flowfabric_examples::{PATIENCE, StoreArgs};
use tokio::sync::mpsc;

const LANE: &str = "deploys";
const DAY: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// Stands for mails to people and a call of the build server: each carries a token, and whoever has
/// the token may speak.
struct Mail(mpsc::UnboundedSender<WaitpointTicket>);

async fn deploy(
    Payload(version): Payload<String>,
    task: Task,
    info: TaskInfo,
    mail: Data<Mail>,
) -> Result<Outcome, Failure> {
    let heard = info.resume_signals();
    if heard.is_empty() {
        let people = task.create_pending_waitpoint("people", None).await?;
        let checks = task.create_pending_waitpoint("checks", None).await?;
        let agreed = Suspension::distinct_sources("people", "approved", 2)?.using(&people);
        let tested = Suspension::signal("checks", "passed")?.using(&checks);
        for ticket in [people, checks] {
            mail.0.send(ticket)?;
        }
        // After a day without an answer an operator is asked; the links still work then.
        let wait = agreed.and(tested).reason("waiting_for_approval");
        return Ok(Outcome::suspend(wait.timeout(DAY).on_timeout(TimeoutBehavior::Escalate)));
    }
    let mut sources: Vec<&str> = heard.iter().map(|it| it.source_identity.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    Outcome::json(&format!("{version} is live, thanks to {}", sources.join(", ")))
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let (outbox, mut inbox) = mpsc::unbounded_channel();
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("deployer").lane(LANE))
        .data(Mail(outbox))
        .on("deploy", deploy)
        .spawn();

    let work = Submission::new("deploy").lane(LANE).json("web 1.4.2")?;
    let execution = client.submit(work).await?;
    let people = inbox.recv().await.context("a mail to people")?;
    let checks = inbox.recv().await.context("a call of the build server")?;
    until_suspended(&client, &execution).await?;
    println!("why is it not running? {}", execution.explain().await?.summary);

    say(&execution, &people, "approved", "ada").await?;
    say(&execution, &people, "approved", "ada").await?;
    say(&execution, &checks, "passed", "build-server").await?;
    say(&execution, &people, "approved", "ben").await?;
    println!("{}", execution.wait_for_result::<String>(PATIENCE).await?);

    worker.stop().await?;
    client.close().await?;
    Ok(())
}

/// People are slower than this program: it waits until the deploy does.
async fn until_suspended(client: &Client, execution: &Execution) -> Result<()> {
    let kinds_of_event = vec![EventKind::Suspended];
    let filter = EventFilter { kinds_of_event, ..EventFilter::default() };
    client.subscribe(filter).from_start().next_about(execution.id()).await?;
    Ok(())
}

/// A click on the link of a mail, or the build server's call.
async fn say(execution: &Execution, ticket: &WaitpointTicket, word: &str, who: &str) -> Result<()> {
    let signal = Signal::new(word, ticket.token.clone()).source("user", who);
    let id = execution.id();
    let did = match execution.client().deliver_signal(id, ticket.waitpoint_id, signal).await? {
        SignalOutcome::Accepted { effect, .. } => effect.as_str(),
        SignalOutcome::TriggeredResume { .. } => "resumes the deploy",
        SignalOutcome::Duplicate { .. } => "was said before",
    };
    println!("{who}: {word} ({did})");
    Ok(())
}
