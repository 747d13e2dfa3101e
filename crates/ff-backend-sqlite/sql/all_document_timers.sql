-- Every due time of a document, for an audit.
-- In due order.
SELECT due, id FROM document_timer
