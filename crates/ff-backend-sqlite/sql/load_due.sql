-- What is due, oldest first.
-- One index range from the beginning of the table.
SELECT id FROM timer WHERE due <= ?1 ORDER BY due, id LIMIT ?2
