-- The next queue in which something stands, behind a queue.
-- One step in the index however many stand in it, or in queues that are empty.
SELECT id, namespace, lane, capabilities FROM queue WHERE id = (SELECT MIN(queue) FROM ready WHERE queue > ?1)
