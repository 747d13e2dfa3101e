-- The oldest and the newest event.
-- Both ends of the primary key.
SELECT (SELECT number FROM event ORDER BY number LIMIT 1), (SELECT number FROM event ORDER BY number DESC LIMIT 1), (SELECT time FROM event ORDER BY number DESC LIMIT 1)
