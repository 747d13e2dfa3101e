//! Which question is which request.

use ff_core::error::EngineError;
use ff_core::read::{Answer, Query};

use crate::exchange::Exchange;
use crate::link::Link;
use crate::no_route;
use crate::operations::Asked;
use crate::questions::{execution, fleet, flow, limit, output, system, wait};

macro_rules! served {
    (
        by_reference { $($asked:ident => $asks:path;)* }
        by_value { $($question:ident => $exchange:path;)* }
    ) => {
        /// The questions that have a route, by the names of their types.
        #[cfg(test)]
        pub(crate) const SERVED: &[&str] = &[$(stringify!($asked),)* $(stringify!($question),)*];

        /// The request that a question is.
        fn exchange(link: &Link, query: Query) -> Asked<Answer> {
            match query {
                $(Query::$asked(q) => Ok($asks(link, &q)?.map(Answer::$asked)),)*
                $(Query::$question(q) => Ok($exchange(link, q)?.map(Answer::$question)),)*
                other => Err(no_route::listed(other.name())),
            }
        }
    };
}

served! {
    by_reference {
        Describe => execution::describe;
        ReadState => execution::state;
        ReadResult => execution::result;
        ReadContext => execution::context;
        ListAttempts => execution::attempts;
        ListEvents => execution::events;
        ListSignals => wait::signals;
        ObserveSignals => wait::observe;
        DescribeFlow => flow::describe;
        ListFlowEvents => flow::events;
        ListFlowMembers => flow::members;
        ListFlowEdges => flow::edges;
        GetBudgetStatus => limit::budget;
        ReadLedger => limit::ledger;
        ReadQuotaLimits => limit::quota_limits;
        DescribeNamespace => system::namespace;
        DescribeWorker => fleet::worker;
        DescribeLane => fleet::lane;
        ReadSummary => output::summary;
    }
    by_value {
        Audit => system::audit;
        Search => execution::search;
        ListPendingWaitpoints => wait::inbox;
        ListKids => system::kids;
        ListFlows => flow::list;
        ListBudgets => limit::budgets;
        ListQuotaPolicies => limit::quotas;
        ListWorkers => fleet::workers;
        ListLanes => fleet::lanes;
    }
}

impl Link {
    pub(crate) async fn ask(&self, query: Query) -> Result<Answer, EngineError> {
        query.check(&self.settings.partitions)?;
        match query {
            Query::ListWaitpoints(question) => {
                self.waitpoints(question.execution_id).await.map(Answer::ListWaitpoints)
            }
            Query::DescribeQuotaPolicy(question) => {
                self.quota(question).await.map(Answer::DescribeQuotaPolicy)
            }
            Query::ReadStream(question) => self.stream(question).await.map(Answer::ReadStream),
            query => {
                let exchange: Exchange<Answer> = exchange(self, query)?;
                self.send(exchange).await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ff_core::read::Query;

    use super::SERVED;
    use crate::no_route::QUESTIONS;

    /// Those that may be several requests.
    const BESIDE: [&str; 3] = ["ListWaitpoints", "DescribeQuotaPolicy", "ReadStream"];

    #[test]
    fn every_question_is_served_or_has_its_reason() {
        assert!(SERVED.iter().chain(&BESIDE).all(|name| Query::TYPES.contains(name)));
        assert_eq!(SERVED.len() + BESIDE.len() + QUESTIONS.len(), Query::TYPES.len());
    }
}
