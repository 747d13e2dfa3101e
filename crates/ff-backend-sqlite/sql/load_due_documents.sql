-- Documents that are due, oldest first, in one home or in all.
-- One index range from the beginning of the table; the home stands behind the kind.
SELECT due, id FROM document_timer WHERE due <= ?1 AND (?3 IS NULL OR substr(id, instr(id, ':') + 1, length(?3)) = ?3) ORDER BY due, id LIMIT ?2
