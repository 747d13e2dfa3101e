-- Average size of the newest events.
-- Times their number it bounds the log by bytes without reading all of it.
SELECT coalesce(avg(length(record)), 0) FROM (SELECT record FROM event ORDER BY number DESC LIMIT 1000)
