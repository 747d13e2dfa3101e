-- Rows beside an execution, and the keys that sign waitpoint tokens.
-- Rows go with their execution; there is one keyring.

CREATE TABLE beside (
    id BLOB NOT NULL,
    family INTEGER NOT NULL,
    name BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (id, family, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE keyring (
    only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
    record BLOB NOT NULL
) STRICT;
