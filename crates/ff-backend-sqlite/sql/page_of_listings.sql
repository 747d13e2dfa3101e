-- Entries in lists of executions behind one of them, some at a time.
-- In the order of the key.
SELECT namespace, list, at, name, id FROM listing WHERE (namespace, list, at, name, id) > (?1, ?2, ?3, ?4, ?5) ORDER BY namespace, list, at, name, id LIMIT ?6
