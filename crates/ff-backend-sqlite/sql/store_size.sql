-- Bytes of the store: what the file has once the write-ahead log is checkpointed.
-- Works in memory too.
SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()
