-- Places in queues behind one of them, some at a time, with the queue that each is of.
-- In the order of the key.
SELECT ready.queue, ready.score, ready.id, queue.namespace, queue.lane, queue.capabilities FROM ready JOIN queue ON queue.id = ready.queue WHERE (ready.queue, ready.score, ready.id) > (?1, ?2, ?3) ORDER BY ready.queue, ready.score, ready.id LIMIT ?4
