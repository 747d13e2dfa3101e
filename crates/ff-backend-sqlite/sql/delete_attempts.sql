-- Removes the earlier attempts of an execution.
-- They go with it.
DELETE FROM attempt WHERE id = ?1
