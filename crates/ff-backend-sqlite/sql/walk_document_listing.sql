-- Entries of a list of documents in order, behind a place, with their records.
-- The list leads: a cross join keeps its order, and each record is found by its key.
SELECT l.at, l.name, l.id, d.record FROM document_listing AS l CROSS JOIN document AS d ON d.id = l.id WHERE l.namespace = ?1 AND l.list = ?2 AND (l.at, l.name, l.id) > (?3, ?4, ?5) ORDER BY l.at, l.name, l.id LIMIT ?6
