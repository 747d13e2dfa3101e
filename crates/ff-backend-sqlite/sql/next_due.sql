-- When time has something to do next.
-- The first entry of each primary key.
SELECT min(due) FROM (SELECT * FROM (SELECT due FROM timer ORDER BY due, id LIMIT 1) UNION ALL SELECT * FROM (SELECT due FROM document_timer ORDER BY due, id LIMIT 1))
