-- Removes all rows beside an execution.
-- It goes too.
DELETE FROM beside WHERE id = ?1
