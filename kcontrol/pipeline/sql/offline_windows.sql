-- A window is an island of `points`, which say whether the leader runs. Parts of 20,000 records are joined: no square of a run's length.
WITH led AS (SELECT *, lead(n, 1, 2147483647) OVER (PARTITION BY run, partition ORDER BY n) AS until FROM partition_states),
latest AS (SELECT *, last(state, true) OVER (PARTITION BY run, leader ORDER BY n ROWS UNBOUNDED PRECEDING) AS now FROM (
    SELECT run, partition, n, record, time_ms, leader, NULL AS state FROM led UNION ALL
    SELECT run, NULL, n, NULL, NULL, broker, struct(event, exit_code) FROM broker_events WHERE event <> 'lead')),
points AS (
    SELECT run, partition, n, record, time_ms, leader, now.event, now.exit_code,
           leader IS NULL OR coalesce(now.event IN ('start', 'thaw'), false) AS is_led FROM latest WHERE state IS NULL UNION ALL
    SELECT l.run, l.partition, b.n, b.record, b.time_ms, l.leader, b.event, b.exit_code, b.event IN ('thaw', 'lead')
    FROM (SELECT led.*, explode(sequence(n DIV 20000, greatest(n, least(until, last_n)) DIV 20000)) AS part FROM led
          JOIN (SELECT run, max(n) AS last_n FROM broker_events GROUP BY run) e ON e.run = led.run WHERE leader >= 0) l
    JOIN broker_events b ON b.run = l.run AND b.broker = l.leader AND b.n DIV 20000 = l.part AND b.n > l.n AND b.n < l.until
         AND b.event <> 'start' AND coalesce(b.partition, l.partition) = l.partition),
edges AS (SELECT *, lead(n) OVER w AS end_n, lead(record) OVER w AS end_record, lead(time_ms) OVER w AS end_ms,
    lead(leader) OVER w AS led_after FROM (
        SELECT *, lag(is_led, 1, true) OVER v AS was_led, IF(leader < 0, lag(leader) OVER v, leader) AS led_before FROM points
        WINDOW v AS (PARTITION BY run, partition ORDER BY n)) WHERE is_led <> was_led WINDOW w AS (PARTITION BY run, partition ORDER BY n))
SELECT e.run, e.n, e.record, e.partition, e.led_before, e.time_ms AS begin_ms, e.end_ms, e.end_ms - e.time_ms AS duration_ms, e.end_n,
       e.end_record, e.led_after, min_by(r.record, r.n) AS refused_record, CASE WHEN bool_or(e.leader < 0 AND d.n < e.n) THEN 'deletion'
       WHEN count(r.n) > 0 THEN 'unclean election refused' WHEN any_value(e.event) = 'freeze' THEN 'freeze'
       WHEN any_value(e.exit_code) = 0 THEN 'shutdown' WHEN any_value(e.event) = 'stop' THEN 'death' ELSE 'no leader elected' END AS reason
FROM edges e LEFT JOIN deletions d ON d.run = e.run AND d.topic = regexp_replace(e.partition, '-[0-9]+$', '') AND d.n < e.n
     AND coalesce(d.end_n > e.n, true)
LEFT JOIN refused_elections r ON r.run = e.run AND r.partition = e.partition AND size(r.running_replicas) > 0 AND r.n > e.n
     AND coalesce(r.n < e.end_n, true) WHERE NOT e.is_led GROUP BY ALL
