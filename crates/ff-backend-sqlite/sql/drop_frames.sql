-- Removes the oldest frames of one mode.
-- As many as new ones push out.
DELETE FROM frame WHERE id = ?1 AND attempt = ?2 AND mode = ?3 AND place IN (SELECT place FROM frame WHERE id = ?1 AND attempt = ?2 AND mode = ?3 ORDER BY place LIMIT ?4)
