-- A due time of a document is gone.
-- By its whole key.
DELETE FROM document_timer WHERE due = ?1 AND id = ?2
