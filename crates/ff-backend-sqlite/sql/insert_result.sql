-- The result of one attempt.
-- An attempt succeeds at most once.
INSERT INTO result (id, attempt, content_type, body) VALUES (?1, ?2, ?3, ?4)
