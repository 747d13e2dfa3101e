-- Empties the lists, which are then derived again.
-- For a repair.
DELETE FROM listing
