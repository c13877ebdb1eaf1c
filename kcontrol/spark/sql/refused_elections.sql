-- Each election of an offline partition that found no leader, with the running replicas; every one of them is outside the ISR.
WITH refused AS (
    SELECT run, n, id AS record, node, f.subject AS partition
    FROM (SELECT *, from_json(fields, 'subject STRING, source STRING, target STRING') AS f FROM journal WHERE kind = 'failed_change')
    WHERE f.source = 'OfflinePartition' AND f.target = 'OnlinePartition'
), running AS (
    SELECT r.run, r.n, t.replica, max_by(b.event, b.n) AS event
    FROM refused r JOIN (SELECT run, partition, replica, min(n) AS n FROM transitions WHERE machine = 'replica' GROUP BY ALL) t
         ON t.run = r.run AND t.partition = r.partition AND t.n < r.n
    JOIN broker_events b ON b.run = r.run AND b.broker = t.replica AND b.n < r.n AND b.event <> 'lead'
    GROUP BY r.run, r.n, t.replica
)
SELECT r.run, r.n, r.record, r.node AS controller, r.partition,
       sort_array(collect_list(IF(u.event IN ('start', 'thaw'), u.replica, NULL))) AS running_replicas
FROM refused r LEFT JOIN running u ON u.run = r.run AND u.n = r.n
GROUP BY r.run, r.n, r.record, r.node, r.partition
