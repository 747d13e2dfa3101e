-- Whether an execution has its timer.
-- One row or none.
SELECT 1 FROM timer WHERE due = ?1 AND id = ?2
