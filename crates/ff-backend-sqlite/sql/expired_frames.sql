-- A mode of an attempt whose frames have outlived their time.
-- The one that has waited longest.
SELECT id, attempt, mode FROM frame_expiry WHERE until <= ?1 ORDER BY until LIMIT 1
