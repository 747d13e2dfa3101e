-- One line of the log.
-- In the transaction of the transition that it tells of.
INSERT INTO event (number, time, record) VALUES (?1, ?2, ?3)
