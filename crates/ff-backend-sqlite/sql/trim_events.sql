-- Removes the oldest events up to a number.
-- The caller bounds the stretch; the newest event stays, for its number.
DELETE FROM event WHERE number <= ?1
