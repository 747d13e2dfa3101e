-- When time has something to do next.
-- The first entry of the primary key.
SELECT due FROM timer ORDER BY due, id LIMIT 1
