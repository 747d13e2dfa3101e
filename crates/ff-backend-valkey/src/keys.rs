//! Key names. A key begins with its family and the partition's hash tag; caller text comes behind
//! the tag and cannot change the slot. `lua/lib/keys.lua` says the same for the functions.

use ff_core::capability::Capabilities;
use ff_core::id::{DocumentId, ExecutionId, Home, LaneId, Namespace, Subject};
use ff_core::machine::DedupKey;
use ff_core::state::{FrameMode, QueuePlace};
use sha1::{Digest as _, Sha1};
use uuid::Uuid;

use crate::client::slot_of;

/// Names of one deployment.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) prefix: String,
}

/// The class of executions that require nothing.
pub(crate) const NO_CAPABILITIES: &str = "-";

/// The index of what queues require that have entries.
pub(crate) const REQUIRED: &str = "required";

/// With which the names of all counts of lanes begin; the namespace follows.
pub(crate) const LANES: &str = "lanes:";

impl Keys {
    pub(crate) fn core(&self, id: ExecutionId) -> String {
        self.of_execution(id, "core")
    }

    pub(crate) fn payload(&self, id: ExecutionId) -> String {
        self.of_execution(id, "payload")
    }

    pub(crate) fn results(&self, id: ExecutionId) -> String {
        self.of_execution(id, "results")
    }

    pub(crate) fn attempts(&self, id: ExecutionId) -> String {
        self.of_execution(id, "attempts")
    }

    /// Output of an attempt, frames of one mode.
    pub(crate) fn frames(&self, id: ExecutionId, attempt: u32, mode: FrameMode) -> String {
        self.of_execution(id, &format!("frames:{attempt}:{}", mode.code()))
    }

    /// The attempts that have output.
    pub(crate) fn streams(&self, id: ExecutionId) -> String {
        self.of_execution(id, "streams")
    }

    /// The stream that tells whose output has grown.
    pub(crate) fn told(&self, partition: u16) -> String {
        self.index(partition, "told")
    }

    /// The record of an execution or document.
    pub(crate) fn core_of(&self, subject: &Subject) -> String {
        self.of(subject, "core")
    }

    /// Rows beside the record of an execution or document.
    pub(crate) fn beside_of(&self, subject: &Subject) -> String {
        self.of(subject, "beside")
    }

    /// Rows that lie ready for a record that is to be made. Every try has a key of its own.
    pub(crate) fn staged(&self, home: &Home) -> String {
        format!("{}:staged:{home}:{}", self.prefix, Uuid::now_v7().simple())
    }

    /// How many executions that belong to a document are in which state.
    pub(crate) fn tally(&self, id: &DocumentId) -> String {
        self.of_document(id, "tally")
    }

    fn of(&self, subject: &Subject, part: &str) -> String {
        match subject {
            Subject::Execution(id) => self.of_execution(*id, part),
            Subject::Document(id) => self.of_document(id, part),
        }
    }

    pub(crate) fn of_document(&self, id: &DocumentId, part: &str) -> String {
        let DocumentId { kind, home, name } = id;
        format!("{}:{}:{home}:{name}:{part}", self.prefix, kind.as_str())
    }

    fn of_execution(&self, id: ExecutionId, part: &str) -> String {
        let (partition, uuid) = (id.partition(), id.uuid().hyphenated());
        format!("{}:exec:{{fp:{partition}}}:{uuid}:{part}", self.prefix)
    }

    pub(crate) fn dedup(&self, key: &DedupKey) -> String {
        let DedupKey { partition, scope, key } = key;
        format!("{}:idem:{{fp:{partition}}}:{scope}/{key}", self.prefix)
    }

    pub(crate) fn events(&self, partition: u16) -> String {
        self.log(&Home::partition(partition))
    }

    /// The event log of a home.
    pub(crate) fn log(&self, home: &Home) -> String {
        format!("{}:ev:{home}", self.prefix)
    }

    pub(crate) fn index(&self, partition: u16, name: &str) -> String {
        self.index_of(&Home::partition(partition), name)
    }

    pub(crate) fn index_of(&self, home: &Home, name: &str) -> String {
        format!("{}:idx:{home}:{name}", self.prefix)
    }

    pub(crate) fn queue(&self, partition: u16, queue: &str) -> String {
        self.index(partition, &Self::queue_index(queue))
    }

    /// The end of a queue's key.
    pub(crate) fn queue_index(queue: &str) -> String {
        format!("lane:{queue}:eligible")
    }

    /// The end of the key that names the classes of a queue's lane that have entries.
    pub(crate) fn ready_index(queue: &str) -> String {
        format!("lane:{}ready", split_queue(queue).0)
    }

    /// How many executions of a namespace's lanes are in which state.
    pub(crate) fn lanes(&self, home: &Home, namespace: &Namespace) -> String {
        self.index_of(home, &format!("{LANES}{namespace}"))
    }

    /// The partition counts of this deployment.
    pub(crate) fn config(&self) -> String {
        format!("{}:config:partitions", self.prefix)
    }

    /// The namespaces that have a home.
    pub(crate) fn homes(&self) -> String {
        format!("{}:homes:{{g}}", self.prefix)
    }

    /// The keys that sign waitpoint tokens.
    pub(crate) fn keyring(&self) -> String {
        format!("{}:keyring:{{g}}", self.prefix)
    }

    /// The list that holds a queue's wake tokens.
    pub(crate) fn wake(&self, namespace: &Namespace, queue: &str) -> String {
        format!("{}:wake:{{w:{namespace}}}:{queue}", self.prefix)
    }

    /// The list on which one process is told that it should look at its waiters again.
    pub(crate) fn inbox(&self, namespace: &Namespace, process: &str) -> String {
        format!("{}:wake:{{w:{namespace}}}:i:{process}", self.prefix)
    }

    /// Whose turn it is to do what one engine is enough for.
    pub(crate) fn turn(&self, scanner: &str) -> String {
        format!("{}:turn:{scanner}", self.prefix)
    }

    /// The list on which engines are told of a timer that is due soon.
    pub(crate) fn timer_wake(&self) -> String {
        format!("{}:wake:{{w:engine}}", self.prefix)
    }

    pub(crate) fn slot(&self, partition: u16) -> u16 {
        self.slot_of(&Home::partition(partition))
    }

    pub(crate) fn slot_of(&self, home: &Home) -> u16 {
        slot_of(self.log(home).as_bytes())
    }
}

/// `<namespace>/<lane>:`, with which the names of all queues of a lane begin.
pub(crate) fn lane_name(namespace: &Namespace, lane: &LaneId) -> String {
    format!("{namespace}/{lane}:")
}

/// `<namespace>/<lane>:<class>`.
pub(crate) fn queue_name(place: &QueuePlace<'_>) -> String {
    format!("{}{}", lane_name(place.namespace, place.lane), class_of(place.class))
}

/// The name of a queue's lane, as [`lane_name`] writes it, and its class, which has no colon.
pub(crate) fn split_queue(queue: &str) -> (&str, &str) {
    queue.split_at(queue.rfind(':').map_or(0, |colon| colon + 1))
}

/// Whether what stands in a queue requires capabilities, by its name.
pub(crate) fn requires_some(queue: &str) -> bool {
    split_queue(queue).1 != NO_CAPABILITIES
}

/// Short name of a set of capabilities: half of its SHA-1 in hex, which has no colon.
pub(crate) fn class_of(capabilities: &Capabilities) -> String {
    if capabilities.is_empty() {
        return NO_CAPABILITIES.to_owned();
    }
    let digest = Sha1::digest(capabilities.as_csv().as_bytes());
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}
