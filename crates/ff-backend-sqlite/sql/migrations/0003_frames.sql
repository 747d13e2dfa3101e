-- Output of attempts, and when parts of it have outlived their time.
-- A place is a frame's id as one number: milliseconds, then 15 bits.

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
