-- The payload of a new execution.
-- Written once, with the submit.
INSERT INTO payload (id, body) VALUES (?1, ?2)
