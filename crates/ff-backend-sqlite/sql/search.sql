-- Executions newest first, behind a place.
-- Filters are applied by the reader, within its look-ahead.
SELECT created, id, namespace, lane, kind, state, core FROM execution WHERE (created, id) < (?1, ?2) ORDER BY created DESC, id DESC LIMIT ?3
