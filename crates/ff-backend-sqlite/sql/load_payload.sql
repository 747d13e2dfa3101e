-- The payload of one execution.
-- Read by claims, and by a submit that repeats an id.
SELECT body FROM payload WHERE id = ?1
