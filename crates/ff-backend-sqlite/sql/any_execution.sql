-- Whether there is any execution.
-- For a store of an unreleased form.
SELECT EXISTS (SELECT 1 FROM execution)
