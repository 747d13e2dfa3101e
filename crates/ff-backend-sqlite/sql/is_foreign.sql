-- Whether a file holds tables, and not those of a store: it is of another application.
-- Asked before anything is written.
SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table')
   AND (SELECT count(*) FROM sqlite_schema
        WHERE type = 'table' AND name IN ('meta', 'execution', 'attempt', 'dedup')) < 4
