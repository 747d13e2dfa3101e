-- Executions that are due, oldest first, in one partition or in all.
-- One index range from the beginning of the table.
SELECT due, id FROM timer WHERE due <= ?1 AND (?3 IS NULL OR substr(id, 17) = ?3) ORDER BY due, id LIMIT ?2
