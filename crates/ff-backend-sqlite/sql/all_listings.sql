-- Every entry of every list, for an audit.
-- In the order of the key.
SELECT id, list, namespace, at, name FROM listing
