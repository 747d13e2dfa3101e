-- What is remembered under an idempotency key.
-- The reader decides whether it is past its window.
SELECT id, fingerprint, expires FROM dedup WHERE namespace = ?1 AND key = ?2
