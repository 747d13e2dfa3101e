-- Adds to a count of executions.
-- Begins with the first.
INSERT INTO tally (id, field, count) VALUES (?1, ?2, ?3) ON CONFLICT (id, field) DO UPDATE SET count = count + excluded.count
