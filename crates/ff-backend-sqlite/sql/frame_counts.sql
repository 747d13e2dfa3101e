-- How many frames of each mode every attempt has, with the lowest and highest place.
-- For an audit.
SELECT id, attempt, mode, count(*), min(place), max(place) FROM frame GROUP BY id, attempt, mode
