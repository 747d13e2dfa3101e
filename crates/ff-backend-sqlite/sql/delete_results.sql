-- Removes all results of an execution.
-- They go with it.
DELETE FROM result WHERE id = ?1
