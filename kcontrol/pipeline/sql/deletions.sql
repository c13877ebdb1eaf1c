-- Each request to delete a topic in ZooKeeper, until the controller deletes the request; `ineligible` counts the replicas that
-- halted the deletion.
WITH requested AS (
    SELECT *, regexp_extract(path, '^/admin/delete_topics/([^/]+)$', 1) AS topic, lead(n) OVER w AS end_n,
           lead(record) OVER w AS end_record, lead(time_ms) OVER w AS end_ms
    FROM znode_writes WHERE path RLIKE '^/admin/delete_topics/[^/]+$' WINDOW w AS (PARTITION BY run, path ORDER BY n)
)
SELECT r.run, r.n, r.record, r.topic, r.time_ms AS begin_ms, r.end_ms, r.end_ms - r.time_ms AS duration_ms, r.end_n, r.end_record,
       count(t.n) AS ineligible
FROM requested r LEFT JOIN transitions t ON t.run = r.run AND regexp_replace(t.partition, '-[0-9]+$', '') = r.topic
     AND t.target = 'ReplicaDeletionIneligible' AND t.n > r.n AND (r.end_n IS NULL OR t.n < r.end_n)
WHERE r.op = 'create' GROUP BY ALL
