-- Removes a row beside a document.
-- By family and name.
DELETE FROM document_row WHERE id = ?1 AND family = ?2 AND name = ?3
