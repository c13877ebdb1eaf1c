-- Each election of an offline partition that found no leader, with the running replicas; every one of them is outside the ISR.
WITH attempts AS (
    SELECT run, n, id AS record, node, f.subject AS partition, regexp_replace(f.subject, '-[0-9]+$', '') AS topic, NULL AS data
    FROM (SELECT *, from_json(fields, 'subject STRING, source STRING, target STRING') AS f FROM journal WHERE kind = 'failed_change')
    WHERE f.source = 'OfflinePartition' AND f.target = 'OnlinePartition'
    UNION ALL
    SELECT run, n, NULL, NULL, NULL, substr(path, 17), coalesce(data, '')
    FROM znode_writes WHERE path RLIKE '^/brokers/topics/[^/]+$'
), refused AS (
    SELECT *, from_json(known, 'partitions MAP<STRING, ARRAY<INT>>').partitions[regexp_extract(partition, '[0-9]+$', 0)] AS of_topic
    FROM (SELECT *, last(data, true) OVER (PARTITION BY run, topic ORDER BY n) AS known FROM attempts) WHERE record IS NOT NULL
), replicas AS (
    SELECT run, partition, replica, min(n) AS n FROM transitions WHERE machine = 'replica' GROUP BY ALL
), running AS (
    SELECT run, n, broker AS replica, event FROM (
        SELECT *, last(own_event, true) OVER (PARTITION BY run, broker ORDER BY n ROWS UNBOUNDED PRECEDING) AS event FROM (
            SELECT r.run, r.n, t.replica AS broker, NULL AS own_event FROM refused r JOIN replicas t ON t.run = r.run
            AND t.partition = r.partition AND t.n < r.n AND coalesce(array_contains(r.of_topic, t.replica), true)
            UNION ALL SELECT run, n, broker, event FROM broker_events WHERE event <> 'lead')) WHERE own_event IS NULL
)
SELECT r.run, r.n, r.record, r.node AS controller, r.partition,
       sort_array(collect_list(IF(u.event IN ('start', 'thaw'), u.replica, NULL))) AS running_replicas
FROM refused r LEFT JOIN running u ON u.run = r.run AND u.n = r.n
GROUP BY r.run, r.n, r.record, r.node, r.partition
