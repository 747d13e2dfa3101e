-- Lanes of a namespace that hold executions that have not ended.
-- One range of the index, which covers it.
SELECT DISTINCT lane FROM execution INDEXED BY execution_live WHERE namespace = ?1 AND state NOT IN ('completed', 'failed', 'cancelled', 'expired', 'skipped')
