-- The next namespace that has documents in lists, and whether a list of it has any.
-- One step in the index however many documents it has; none: a row of nothing.
SELECT n.namespace, EXISTS (SELECT 1 FROM document_listing AS l WHERE l.namespace = n.namespace AND l.list = ?2) FROM (SELECT MIN(namespace) AS namespace FROM document_listing WHERE namespace > ?1) AS n
