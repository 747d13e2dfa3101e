-- Empties the lists of documents, which are then derived again.
-- For a repair.
DELETE FROM document_listing
