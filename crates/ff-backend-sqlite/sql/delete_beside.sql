-- Removes a row beside an execution.
-- By family and name.
DELETE FROM beside WHERE id = ?1 AND family = ?2 AND name = ?3
