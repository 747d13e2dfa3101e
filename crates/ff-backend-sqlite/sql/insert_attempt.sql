-- An attempt that another has replaced.
-- The current one stands in the execution.
INSERT INTO attempt (id, attempt, record) VALUES (?1, ?2, ?3)
