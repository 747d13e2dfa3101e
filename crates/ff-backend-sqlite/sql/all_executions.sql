-- Every record, for an audit.
-- In the order of the primary key.
SELECT id, created, namespace, lane, kind, state, core FROM execution
