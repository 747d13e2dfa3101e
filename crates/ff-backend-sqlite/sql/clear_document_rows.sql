-- Removes all rows beside a document.
-- It goes too.
DELETE FROM document_row WHERE id = ?1
