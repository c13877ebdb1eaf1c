-- Each write that changes a partition in ZooKeeper: its replicas in the topic's znode, or leader and ISR in the state znode.
WITH topics AS (
    SELECT *, substr(path, 17) AS topic, from_json(data, 'partitions MAP<STRING, ARRAY<INT>>, adding_replicas MAP<STRING, ARRAY<INT>>,
           removing_replicas MAP<STRING, ARRAY<INT>>') AS f FROM znode_writes WHERE path RLIKE '^/brokers/topics/[^/]+$'
), points AS (
    SELECT run, n, record, time_ms, node, zxid, partition, NULL AS assigned, struct(leader, isr, leader_epoch) AS led FROM partition_states
    UNION ALL
    SELECT t.run, t.n, t.record, t.time_ms, t.node, t.zxid, concat(t.topic, '-', p.number), IF(t.f.partitions[p.number] IS NULL,
           struct(NULL AS replicas, NULL AS adding, NULL AS removing), struct(t.f.partitions[p.number] AS replicas,
           coalesce(t.f.adding_replicas[p.number], array()) AS adding, coalesce(t.f.removing_replicas[p.number], array()) AS removing)),
           NULL
    FROM topics t JOIN (SELECT DISTINCT run, topic, explode(map_keys(f.partitions)) AS number FROM topics) p
         ON p.run = t.run AND p.topic = t.topic
), held AS (
    SELECT run, n, partition, any_value(record) AS record, any_value(time_ms) AS time_ms, any_value(node) AS node,
           any_value(zxid) AS zxid, max(assigned) AS assigned, max(led) AS led FROM points GROUP BY run, n, partition
), known AS (
    SELECT *, struct(a.replicas, a.adding, a.removing, l.leader, l.isr, l.leader_epoch) AS now FROM (
        SELECT *, last(assigned, true) OVER w AS a, last(led, true) OVER w AS l FROM held
        WINDOW w AS (PARTITION BY run, partition ORDER BY n ROWS UNBOUNDED PRECEDING))
)
SELECT run, n, record, time_ms, zxid, partition, node AS written_by, a.replicas, a.adding AS adding_replicas,
       a.removing AS removing_replicas, l.leader, l.isr, l.leader_epoch
FROM (SELECT *, lag(now) OVER (PARTITION BY run, partition ORDER BY n) AS before FROM known)
WHERE now IS DISTINCT FROM before AND (before IS NOT NULL OR coalesce(a.replicas, l.isr) IS NOT NULL)
