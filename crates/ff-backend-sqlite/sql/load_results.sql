-- Results of an execution, newest attempt first.
-- With a number: that attempt only.
SELECT content_type, body FROM result WHERE id = ?1 AND (?2 IS NULL OR attempt = ?2) ORDER BY attempt DESC LIMIT 1
