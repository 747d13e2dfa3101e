-- A row beside an execution.
-- By family and name.
SELECT body FROM beside WHERE id = ?1 AND family = ?2 AND name = ?3
