//! An order waits for a payment. The bank calls back over HTTP, and shows the token that it was
//! given; nobody else can say that the money is there.

mod listener;

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use clap::Parser as _;
use flowfabric::bridge::{BridgeError, verify_and_deliver};
use flowfabric::core::id::WaitpointKey;
use flowfabric::runtime::{Data, Failure, Outcome, Payload, Task, TaskInfo};
use flowfabric::{
    Client, Signal, Submission, Suspension, WaitpointToken, WorkerConfig, WorkerRuntime,
};
use flowfabric_examples::{PATIENCE, StoreArgs};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const LANE: &str = "orders";

/// What the bank is told, and sends back with the payment.
#[derive(Clone, Serialize, Deserialize)]
struct Payment {
    order: String,
    token: String,
    cents: u64,
}

/// Stands for the API of a bank.
struct Bank(mpsc::UnboundedSender<Payment>);

/// Asks the bank for the money, and lets go until it has called back. The waitpoint is made before
/// the bank hears of it: an answer that comes at once is kept.
async fn sell(
    Payload(cents): Payload<u64>,
    task: Task,
    info: TaskInfo,
    bank: Data<Bank>,
) -> Result<Outcome, Failure> {
    if let Some(paid) = info.resume_signals().last() {
        let payment: Payment = serde_json::from_slice(paid.payload.as_deref().unwrap_or_default())?;
        let bank = &paid.source_identity;
        return Outcome::json(&format!("shipped: {bank} says {} cents are paid", payment.cents));
    }
    let ticket = task.create_pending_waitpoint("payment", None).await?;
    let (order, token) = (info.execution_id().to_string(), ticket.token.expose().to_owned());
    bank.0.send(Payment { order, token, cents }).map_err(|_| "the bank is closed")?;
    Ok(Outcome::suspend(Suspension::signal("payment", "paid")?.using(&ticket)))
}

/// The webhook: what came from outside is checked by its token, and delivered.
async fn paid(client: Client, body: Vec<u8>) -> u16 {
    let Ok(payment) = serde_json::from_slice::<Payment>(&body) else { return 400 };
    let Ok(order) = payment.order.parse() else { return 404 };
    let Ok(token) = WaitpointToken::parse(&payment.token) else { return 401 };
    let Ok(key) = "payment".parse::<WaitpointKey>() else { return 500 };
    // Banks repeat themselves; the key makes it count once.
    let signal = Signal::new("paid", token)
        .payload(body)
        .source("bank", "acme-bank")
        .idempotency_key("payment");
    match verify_and_deliver(&client, order, key, signal).await {
        Ok(_) => 202,
        Err(BridgeError::UnknownWaitpoint) => 404,
        Err(BridgeError::TokenMismatch) => 401,
        Err(BridgeError::Backend(_)) => 503,
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let store = StoreArgs::parse().open()?;
    let client = store.connect().await?;
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let address = listener.local_addr()?;
    let hook = client.clone();
    let listening = tokio::spawn(listener::serve(listener, move |body| paid(hook.clone(), body)));
    let (bank, mut bills) = mpsc::unbounded_channel();
    let worker = WorkerRuntime::with_client(&client, WorkerConfig::new("shop").lane(LANE))
        .data(Bank(bank))
        .on("sell", sell)
        .spawn();

    let order = client.submit(Submission::new("sell").lane(LANE).json(&4_200)?).await?;
    let bill = bills.recv().await.context("the bank is asked for money")?;
    let forged = Payment { token: forge(&bill.token), ..bill.clone() };
    let lost = Payment { order: "{fp:0}:nobody".to_owned(), ..bill.clone() };
    let calls = [("a forged token", &forged), ("an unknown order", &lost), ("the bank", &bill)];
    for (who, payment) in calls {
        println!("{who}: HTTP {}", call_back(address, payment).await?);
    }
    println!("{}", order.wait_for_result::<String>(PATIENCE).await?);
    println!("the bank, once more: HTTP {}", call_back(address, &bill).await?);

    listening.abort();
    worker.stop().await?;
    client.close().await?;
    Ok(())
}

/// The same token but for its last letter.
fn forge(token: &str) -> String {
    let last = if token.ends_with('0') { '1' } else { '0' };
    let all_but_last = token.len().saturating_sub(1);
    token.chars().take(all_but_last).chain([last]).collect()
}

/// What the bank does when the money is there.
async fn call_back(address: SocketAddr, payment: &Payment) -> Result<u16> {
    let url = format!("http://{address}/paid");
    let answer = reqwest::Client::new().post(url).json(payment).send().await?;
    Ok(answer.status().as_u16())
}
