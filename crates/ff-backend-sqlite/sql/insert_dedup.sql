-- Remembers a submit under its key.
-- A record past its window gives way.
INSERT OR REPLACE INTO dedup (namespace, key, id, fingerprint, expires) VALUES (?1, ?2, ?3, ?4, ?5)
