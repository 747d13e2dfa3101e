-- Every timer, for an audit.
-- In due order.
SELECT due, id FROM timer
