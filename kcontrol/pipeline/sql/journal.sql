-- Each record of each run. `n` is its position in the run's file. `at` is a wall clock, `at_ms` a virtual clock, `time_ms` either.
SELECT run, n, concat_ws('.', id) AS id, IF(clock = 'wall', timestamp_millis(at_ms), NULL) AS at,
       IF(clock = 'virtual', at_ms, NULL) AS at_ms, IF(clock = 'none', NULL, at_ms) AS time_ms,
       CAST(IF(id[0] < 0, NULL, id[0]) AS INT) AS node, CAST(id[1] AS INT) AS incarnation, CAST(id[2] AS INT) AS seq,
       kind, IF(cause IS NULL, NULL, concat_ws('.', cause)) AS cause, fields
FROM lines
