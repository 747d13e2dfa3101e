-- Every document, for an audit or a repair.
-- In the order of the key.
SELECT id, record FROM document
