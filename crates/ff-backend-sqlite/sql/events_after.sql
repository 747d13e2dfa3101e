-- The log after a number.
-- Bounded by the look-ahead of the reader.
SELECT record FROM event WHERE number > ?1 ORDER BY number LIMIT ?2
