-- How many executions of a lane are in which state; ended ones are not counted.
-- One range of the index, which covers it.
SELECT state, count(*) FROM execution INDEXED BY execution_live WHERE namespace = ?1 AND lane = ?2 AND state NOT IN ('completed', 'failed', 'cancelled', 'expired', 'skipped') GROUP BY state
