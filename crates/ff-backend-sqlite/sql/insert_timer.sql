-- Time will change this execution.
-- One entry each, re-written when the earliest cause changes.
INSERT INTO timer (due, id) VALUES (?1, ?2)
