-- Removes all frames of an execution.
-- It goes too.
DELETE FROM frame WHERE id = ?1
