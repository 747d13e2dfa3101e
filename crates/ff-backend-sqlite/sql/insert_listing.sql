-- An entry of a list.
-- Its whole row is its key.
INSERT INTO listing (namespace, list, at, name, id) VALUES (?1, ?2, ?3, ?4, ?5)
