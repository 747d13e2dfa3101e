-- Removes what is known of when frames of an execution go.
-- It goes too.
DELETE FROM frame_expiry WHERE id = ?1
