-- Each life of a broker's process, from its start to its stop, with the record that registered the broker in ZooKeeper.
WITH lives AS (
    SELECT *, lead(n) OVER w AS end_n, lead(record) OVER w AS end_record, lead(time_ms) OVER w AS end_ms, lead(exit_code) OVER w AS code
    FROM broker_events WHERE event IN ('start', 'stop') WINDOW w AS (PARTITION BY run, broker ORDER BY n)
)
SELECT l.run, l.n, l.record, l.broker, l.incarnation, l.time_ms AS begin_ms, l.end_ms, l.end_ms - l.time_ms AS duration_ms, l.end_n,
       l.end_record, min_by(z.record, z.n) AS registered_record, min(z.time_ms) AS registered_ms, l.code AS exit_code,
       CASE WHEN l.end_n IS NULL THEN NULL WHEN l.code IS NULL THEN 'killed' WHEN l.code = 0 THEN 'shut down' ELSE 'halted' END AS ended_by
FROM lives l LEFT JOIN znode_writes z ON z.run = l.run AND z.path = concat('/brokers/ids/', l.broker) AND z.op = 'create'
     AND z.n > l.n AND (l.end_n IS NULL OR z.n < l.end_n)
WHERE l.event = 'start' GROUP BY ALL
