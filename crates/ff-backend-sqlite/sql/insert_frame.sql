-- A frame.
-- Its place is new.
INSERT INTO frame (id, attempt, mode, place, type, content_type, correlation, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
