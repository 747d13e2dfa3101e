-- Whether an execution stands in a queue at its place.
-- One row or none.
SELECT 1 FROM ready WHERE queue = ?1 AND score = ?2 AND id = ?3
