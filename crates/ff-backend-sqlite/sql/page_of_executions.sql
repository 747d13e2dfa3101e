-- Executions behind an id, some at a time, with all columns: a check of one page goes on behind
-- the last of the page before. In the order of ids.
SELECT id, created, namespace, lane, kind, state, core FROM execution WHERE id > ?1 ORDER BY id LIMIT ?2
