-- An execution leaves its queue.
-- The whole key is known from the record.
DELETE FROM ready WHERE queue = ?1 AND score = ?2 AND id = ?3
