-- The schema as it is today, whole.
-- A test proves that the migrations lead here. Ids are 18 bytes: uuid, then partition.

-- What is fixed at the first boot: partition counts.
CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row an execution. `core` is the whole record; the other columns are for people and filters.
CREATE TABLE execution (
    id BLOB PRIMARY KEY,
    created INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    lane TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    core BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX execution_created ON execution (created, id);

-- Executions that have not ended, by lane and state: what a lane holds, and who runs what.
-- Small, since most executions have ended.
CREATE INDEX execution_live ON execution (namespace, lane, state)
    WHERE state NOT IN ('completed', 'failed', 'cancelled', 'expired', 'skipped');

-- Payloads stand apart: they are written once and most operations do not read them.
CREATE TABLE payload (
    id BLOB PRIMARY KEY,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE result (
    id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    content_type TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (id, attempt)
) STRICT, WITHOUT ROWID;

-- Attempts before the current one, which stands in the execution.
CREATE TABLE attempt (
    id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (id, attempt)
) STRICT, WITHOUT ROWID;

-- A queue for each lane and set of required capabilities.
CREATE TABLE queue (
    id INTEGER PRIMARY KEY,
    namespace TEXT NOT NULL,
    lane TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    UNIQUE (namespace, lane, capabilities)
) STRICT;

-- What may be claimed, in the order in which it is.
CREATE TABLE ready (
    queue INTEGER NOT NULL,
    score INTEGER NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (queue, score, id)
) STRICT, WITHOUT ROWID;

-- One entry for each execution that time will change.
CREATE TABLE timer (
    due INTEGER NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (due, id)
) STRICT, WITHOUT ROWID;

-- Submits remembered by their idempotency key.
CREATE TABLE dedup (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    id BLOB NOT NULL,
    fingerprint BLOB NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX dedup_expires ON dedup (expires);

-- The log. Numbers rise over all partitions in commit order.
CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    record BLOB NOT NULL
) STRICT;

-- Whatever else belongs to one execution: signals, closed waitpoints and the like, by family and
-- name. Written and read by the rules alone; goes with its execution.
CREATE TABLE beside (
    id BLOB NOT NULL,
    family INTEGER NOT NULL,
    name BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (id, family, name)
) STRICT, WITHOUT ROWID;

-- The keys that sign waitpoint tokens: one record.
CREATE TABLE keyring (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
    record BLOB NOT NULL
) STRICT;

-- Output of attempts. A place is a frame's id as one number: milliseconds, then 15 bits.
CREATE TABLE frame (
    id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    place INTEGER NOT NULL,
    type TEXT NOT NULL,
    content_type TEXT NOT NULL,
    correlation TEXT,
    body BLOB NOT NULL,
    PRIMARY KEY (id, attempt, mode, place)
) STRICT, WITHOUT ROWID;

-- When all frames of one mode are gone.
CREATE TABLE frame_expiry (
    id BLOB NOT NULL,
    attempt INTEGER NOT NULL,
    mode INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (id, attempt, mode)
) STRICT, WITHOUT ROWID;

CREATE INDEX frame_expiry_until ON frame_expiry (until);

-- Lists over all executions of a namespace, such as waitpoints and suspended ones. What a list is of
-- is not known here; entries follow from the records.
CREATE TABLE listing (
    namespace TEXT NOT NULL,
    list INTEGER NOT NULL,
    at INTEGER NOT NULL,
    name BLOB NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (namespace, list, at, name, id)
) STRICT, WITHOUT ROWID;

-- Records that are not executions, such as flows. What they are is not known here. An id has its kind
-- and home in it.
CREATE TABLE document (
    id TEXT PRIMARY KEY,
    record BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Whatever else belongs to one document, by family and name. Goes with it.
CREATE TABLE document_row (
    id TEXT NOT NULL,
    family INTEGER NOT NULL,
    name BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (id, family, name)
) STRICT, WITHOUT ROWID;

-- One entry for each document that time will change.
CREATE TABLE document_timer (
    due INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (due, id)
) STRICT, WITHOUT ROWID;

-- Lists over all documents of a namespace; entries follow from the records.
CREATE TABLE document_listing (
    namespace TEXT NOT NULL,
    list INTEGER NOT NULL,
    at INTEGER NOT NULL,
    name BLOB NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (namespace, list, at, name, id)
) STRICT, WITHOUT ROWID;

-- How many executions that belong to a document are in which state, by the number of the state.
-- Follows from the executions.
CREATE TABLE tally (
    id TEXT NOT NULL,
    field INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (id, field)
) STRICT, WITHOUT ROWID;
