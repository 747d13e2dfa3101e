-- Lists over all executions of a namespace.
-- What a list is of is not known here; entries follow from the records.

CREATE TABLE listing (
    namespace TEXT NOT NULL,
    list INTEGER NOT NULL,
    at INTEGER NOT NULL,
    name BLOB NOT NULL,
    id BLOB NOT NULL,
    PRIMARY KEY (namespace, list, at, name, id)
) STRICT, WITHOUT ROWID;
