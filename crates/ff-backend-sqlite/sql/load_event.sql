-- One event by its number.
-- Used to walk the history of one execution backwards.
SELECT record FROM event WHERE number = ?1
