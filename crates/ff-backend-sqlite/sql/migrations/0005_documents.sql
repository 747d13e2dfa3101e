-- Documents: records that are not executions, with rows, timers and lists of their own.
-- Counts of executions by the document that they belong to.

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
