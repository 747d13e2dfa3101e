-- A queue that was not known.
-- Made by the first execution that needs it.
INSERT INTO queue (id, namespace, lane, capabilities) VALUES (?1, ?2, ?3, ?4)
