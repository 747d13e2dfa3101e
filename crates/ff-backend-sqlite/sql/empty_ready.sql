-- Empties the queues, which are then derived again.
-- For a repair.
DELETE FROM ready
