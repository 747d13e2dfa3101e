-- Whether a document has its timer.
-- One row or none.
SELECT 1 FROM document_timer WHERE due = ?1 AND id = ?2
