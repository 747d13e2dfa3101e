-- The next namespace that has executions that have not ended, or documents in lists.
-- Two steps in indexes however many there are; none: a row of nothing.
SELECT MIN(namespace) FROM (SELECT MIN(namespace) AS namespace FROM execution INDEXED BY execution_live WHERE namespace > ?1 AND state NOT IN ('completed', 'failed', 'cancelled', 'expired', 'skipped') UNION ALL SELECT MIN(namespace) FROM document_listing WHERE namespace > ?1)
