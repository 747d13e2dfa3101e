-- A document gets a due time.
-- It has no other.
INSERT INTO document_timer (due, id) VALUES (?1, ?2)
