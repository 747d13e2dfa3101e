-- Documents that are due, oldest first.
-- One index range from the beginning of the table.
SELECT due, id FROM document_timer WHERE due <= ?1 ORDER BY due, id LIMIT ?2
