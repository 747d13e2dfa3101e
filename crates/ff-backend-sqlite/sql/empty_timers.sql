-- Empties the timers, which are then derived again.
-- For a repair.
DELETE FROM timer
