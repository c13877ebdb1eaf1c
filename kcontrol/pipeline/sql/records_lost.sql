-- Each acknowledged record of a topic of which no replica has a copy any more.
SELECT run, n, id AS record, time_ms, f.partition, f.offset, f.leader_epoch, f.value, f.acks, f.leader AS acknowledged_by, cause
FROM (SELECT *, from_json(fields, 'partition STRING, offset BIGINT, leader_epoch INT, value STRING, acks STRING, leader INT') AS f
      FROM journal WHERE kind = 'record_lost')
