-- A timer that no longer holds.
-- The whole key is known from the record.
DELETE FROM timer WHERE due = ?1 AND id = ?2
