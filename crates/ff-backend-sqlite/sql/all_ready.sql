-- Every queue entry, for an audit.
-- With the names of its queue.
SELECT ready.id, ready.score, queue.namespace, queue.lane, queue.capabilities FROM ready JOIN queue ON queue.id = ready.queue
