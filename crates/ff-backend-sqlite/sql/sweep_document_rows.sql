-- Removes rows of documents that are not there.
-- For a repair.
DELETE FROM document_row WHERE id NOT IN (SELECT id FROM document)
