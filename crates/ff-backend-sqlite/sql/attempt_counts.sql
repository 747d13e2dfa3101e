-- How many earlier attempts each execution has, with the highest index.
-- For an audit.
SELECT id, count(*), max(attempt) FROM attempt GROUP BY id
