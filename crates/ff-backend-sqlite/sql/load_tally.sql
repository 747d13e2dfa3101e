-- Counts of executions that belong to a document.
-- By state.
SELECT field, count FROM tally WHERE id = ?1
