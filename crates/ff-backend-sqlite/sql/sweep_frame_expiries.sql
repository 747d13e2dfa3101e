-- Removes rows of executions that are not there.
-- For a repair.
DELETE FROM frame_expiry WHERE id NOT IN (SELECT id FROM execution)
