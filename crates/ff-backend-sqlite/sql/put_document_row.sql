-- Writes a row beside a document.
-- One that is there is replaced.
INSERT OR REPLACE INTO document_row (id, family, name, body) VALUES (?1, ?2, ?3, ?4)
