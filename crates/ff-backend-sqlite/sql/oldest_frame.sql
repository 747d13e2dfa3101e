-- The oldest frame of one mode that is not before a place.
-- Null when there is none.
SELECT min(place) FROM frame WHERE id = ?1 AND attempt = ?2 AND mode = ?3 AND place >= ?4
