-- Removes a document.
-- Its rows go apart.
DELETE FROM document WHERE id = ?1
