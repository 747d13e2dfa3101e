-- A new execution.
-- The plain columns never change, but for the state.
INSERT INTO execution (id, created, namespace, lane, kind, state, core) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
