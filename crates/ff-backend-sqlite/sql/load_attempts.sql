-- Earlier attempts behind an index.
-- One page.
SELECT record FROM attempt WHERE id = ?1 AND attempt > ?2 ORDER BY attempt LIMIT ?3
