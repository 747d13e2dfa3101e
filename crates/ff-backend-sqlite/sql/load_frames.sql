-- Frames of one mode within a range.
-- In order.
SELECT place, type, content_type, correlation, body FROM frame WHERE id = ?1 AND attempt = ?2 AND mode = ?3 AND place BETWEEN ?4 AND ?5 ORDER BY place LIMIT ?6
