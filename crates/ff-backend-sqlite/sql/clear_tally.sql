-- Removes the counts of a document.
-- It goes too.
DELETE FROM tally WHERE id = ?1
