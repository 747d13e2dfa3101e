-- An execution enters its queue.
-- Its score is its place.
INSERT INTO ready (queue, score, id) VALUES (?1, ?2, ?3)
