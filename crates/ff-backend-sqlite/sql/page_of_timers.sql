-- Timers of executions behind one of them, some at a time.
-- In the order of the key.
SELECT due, id FROM timer WHERE (due, id) > (?1, ?2) ORDER BY due, id LIMIT ?3
