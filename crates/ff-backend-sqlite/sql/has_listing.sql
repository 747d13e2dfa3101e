-- Whether an execution stands in a list.
-- One row or none.
SELECT 1 FROM listing WHERE namespace = ?1 AND list = ?2 AND at = ?3 AND name = ?4 AND id = ?5
