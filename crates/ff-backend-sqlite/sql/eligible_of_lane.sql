-- Eligible executions of a lane, the front of each of its queues first, with their records.
-- The queues lead: each is one range of its key.
SELECT e.core FROM queue AS q CROSS JOIN ready AS r ON r.queue = q.id CROSS JOIN execution AS e ON e.id = r.id WHERE q.namespace = ?1 AND q.lane = ?2 LIMIT ?3
