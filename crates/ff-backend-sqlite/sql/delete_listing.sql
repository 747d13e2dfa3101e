-- An entry of a list that no longer holds.
-- The whole key is known from the record.
DELETE FROM listing WHERE namespace = ?1 AND list = ?2 AND at = ?3 AND name = ?4 AND id = ?5
