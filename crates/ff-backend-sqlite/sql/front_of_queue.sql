-- The front of the queue of a lane and a set of required capabilities.
-- The queue leads: what stands in it is one range of its key.
SELECT r.id FROM queue AS q CROSS JOIN ready AS r ON r.queue = q.id WHERE q.namespace = ?1 AND q.lane = ?2 AND q.capabilities = ?3 ORDER BY r.score, r.id LIMIT ?4
