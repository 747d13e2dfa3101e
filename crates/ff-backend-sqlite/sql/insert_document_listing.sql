-- A document enters a list.
-- By its whole key.
INSERT INTO document_listing (namespace, list, at, name, id) VALUES (?1, ?2, ?3, ?4, ?5)
