-- Writes a row beside an execution.
-- One that is there is replaced.
INSERT OR REPLACE INTO beside (id, family, name, body) VALUES (?1, ?2, ?3, ?4)
