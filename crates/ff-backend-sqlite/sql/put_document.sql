-- Writes the record of a document.
-- One that is there is replaced.
INSERT OR REPLACE INTO document (id, record) VALUES (?1, ?2)
