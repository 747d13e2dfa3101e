-- Sets the keys that sign waitpoint tokens.
-- There is one record.
INSERT OR REPLACE INTO keyring (only_one, record) VALUES (1, ?1)
