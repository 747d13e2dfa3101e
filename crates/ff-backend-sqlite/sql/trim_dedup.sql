-- Removes records of repetition that are past their window.
-- Bounded; the caller repeats.
DELETE FROM dedup WHERE (namespace, key) IN (SELECT namespace, key FROM dedup WHERE expires <= ?1 ORDER BY expires LIMIT ?2)
