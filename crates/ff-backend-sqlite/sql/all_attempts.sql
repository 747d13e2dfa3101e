-- All attempts before the current one.
-- For an audit.
SELECT id, record FROM attempt
