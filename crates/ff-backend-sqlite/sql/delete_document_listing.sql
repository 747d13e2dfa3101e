-- A document leaves a list.
-- By its whole key.
DELETE FROM document_listing WHERE namespace = ?1 AND list = ?2 AND at = ?3 AND name = ?4 AND id = ?5
