-- When all frames of one mode are gone.
-- Later frames of that mode move it.
INSERT INTO frame_expiry (id, attempt, mode, until) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET until = excluded.until
