-- All queues, read once when the store is opened.
-- The flag says whether anything stands in it.
SELECT id, namespace, lane, capabilities, EXISTS (SELECT 1 FROM ready WHERE queue = queue.id) FROM queue
