-- Each content of a partition's state znode, by a transition of a controller or by any other write. Leader and ISR are NULL where
-- the znode is deleted; a content without a leader and an ISR is left out.
WITH changes AS (
    SELECT *, from_json(fields, 'machine STRING, subject STRING, source STRING, write STRING, rule STRING, zxid BIGINT,
                        leadership STRUCT<leader: INT, isr: ARRAY<INT>, leader_epoch: INT, controller_epoch: INT>') AS f
    FROM journal WHERE kind = 'change'
), others AS (
    SELECT *, regexp_replace(path, '^/brokers/topics/([^/]+)/partitions/([0-9]+)/state$', '$1-$2') AS partition,
           from_json(data, 'leader INT, isr ARRAY<INT>, leader_epoch INT, controller_epoch INT') AS v
    FROM znode_writes WHERE path RLIKE '^/brokers/topics/[^/]+/partitions/[0-9]+/state$' AND op <> 'close'
)
SELECT run, n, id AS record, time_ms, node, f.zxid, regexp_replace(f.subject, '@[0-9]+$', '') AS partition,
       IF(f.machine = 'partition', f.source, NULL) AS source, NULLIF(f.rule, '') AS rule, f.leadership.*
FROM changes WHERE f.write IS NOT NULL
UNION ALL
SELECT run, n, record, time_ms, node, zxid, partition, NULL, NULL, v.* FROM others
WHERE op <> 'delete' AND v.leader IS NOT NULL AND v.isr IS NOT NULL
UNION ALL
SELECT run, n, record, time_ms, node, zxid, partition, NULL, NULL, NULL, NULL, NULL, NULL FROM others WHERE op = 'delete'
