-- The oldest stretch of the log.
-- The trimmer looks at it to see how much has passed its time.
SELECT number, time FROM event ORDER BY number LIMIT ?1
