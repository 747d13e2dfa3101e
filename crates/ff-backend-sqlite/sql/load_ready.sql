-- The front of one queue.
-- One index range; the limit is what the claims of a batch ask for.
SELECT score, id FROM ready WHERE queue = ?1 ORDER BY score, id LIMIT ?2
