-- Frames of one mode are gone.
-- Nothing is left to remove.
DELETE FROM frame_expiry WHERE id = ?1 AND attempt = ?2 AND mode = ?3
