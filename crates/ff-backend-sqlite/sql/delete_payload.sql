-- Removes a payload.
-- Goes with its execution.
DELETE FROM payload WHERE id = ?1
