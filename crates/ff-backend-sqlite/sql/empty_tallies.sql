-- Empties the counts, which are then derived again.
-- For a repair.
DELETE FROM tally
