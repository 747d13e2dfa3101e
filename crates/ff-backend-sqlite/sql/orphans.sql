-- Rows beside an execution that is not there.
-- Empty on a sound store.
SELECT 'payload', id FROM payload WHERE id NOT IN (SELECT id FROM execution) UNION ALL SELECT 'result', id FROM result WHERE id NOT IN (SELECT id FROM execution) UNION ALL SELECT 'attempt', id FROM attempt WHERE id NOT IN (SELECT id FROM execution) UNION ALL SELECT 'beside', id FROM beside WHERE id NOT IN (SELECT id FROM execution)
