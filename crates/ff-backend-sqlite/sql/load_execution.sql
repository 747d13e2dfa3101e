-- The record of one execution.
-- Hot: once for every execution that a batch touches.
SELECT core FROM execution WHERE id = ?1
