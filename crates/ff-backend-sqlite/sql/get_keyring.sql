-- The keys that sign waitpoint tokens.
-- Absent before the first boot has ended.
SELECT record FROM keyring WHERE only_one = 1
