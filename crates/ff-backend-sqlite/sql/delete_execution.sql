-- Removes an execution.
-- What stands beside it is removed by statements of its own.
DELETE FROM execution WHERE id = ?1
