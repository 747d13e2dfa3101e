-- An execution after a step.
-- Only what may change is written.
UPDATE execution SET state = ?2, core = ?3 WHERE id = ?1
