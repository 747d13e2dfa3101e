-- Sets a setting of the store.
-- Only the first boot and the trimmer of the log write here.
INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)
