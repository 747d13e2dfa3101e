-- Rows and counts beside a document that is not there.
-- Empty on a sound store.
SELECT 'document_row', id FROM document_row WHERE id NOT IN (SELECT id FROM document) UNION SELECT 'tally', id FROM tally WHERE id NOT IN (SELECT id FROM document)
