-- Removes rows of executions that are not there.
-- For a repair.
DELETE FROM payload WHERE id NOT IN (SELECT id FROM execution)
