-- Entries of a list oldest first, behind a place, with the records that they are of.
-- The list leads: a cross join keeps its order, and each record is found by its key.
SELECT l.at, l.name, l.id, e.core FROM listing AS l CROSS JOIN execution AS e ON e.id = l.id WHERE l.namespace = ?1 AND l.list = ?2 AND (l.at, l.name, l.id) > (?3, ?4, ?5) ORDER BY l.at, l.name, l.id LIMIT ?6
