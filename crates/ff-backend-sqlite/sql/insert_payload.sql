-- The payload of an execution.
-- Another may take its place.
INSERT OR REPLACE INTO payload (id, body) VALUES (?1, ?2)
