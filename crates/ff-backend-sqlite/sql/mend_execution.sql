-- Writes the columns that repeat what the record says.
-- For a repair.
UPDATE execution SET created = ?2, namespace = ?3, lane = ?4, kind = ?5, state = ?6 WHERE id = ?1
