-- Empties the due times of documents, which are then derived again.
-- For a repair.
DELETE FROM document_timer
