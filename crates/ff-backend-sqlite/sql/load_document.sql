-- The record of a document.
-- By its id.
SELECT record FROM document WHERE id = ?1
