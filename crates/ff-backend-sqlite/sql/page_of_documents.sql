-- Documents of one kind behind an id, some at a time. Ids of a kind begin alike, and end before ?2.
-- In the order of ids.
SELECT id, record FROM document WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT ?3
