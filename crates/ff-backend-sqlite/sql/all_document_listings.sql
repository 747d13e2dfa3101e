-- Every entry of every list of documents, for an audit.
-- In the order of the key.
SELECT id, list, namespace, at, name FROM document_listing
