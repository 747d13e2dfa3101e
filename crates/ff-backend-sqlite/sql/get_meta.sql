-- A setting of the store.
-- Fixed at the first boot.
SELECT value FROM meta WHERE key = ?1
