-- Each request of a controller to a broker; its state is NULL if a run of broker logs has no line about a response in this channel.
WITH sent AS (SELECT *, from_json(fields, 'requests STRUCT<controller_epoch: INT, update_metadata: STRUCT<to: ARRAY<STRING>, partitions:
        MAP<STRING, STRING>>, leader_and_isr: STRUCT<to: MAP<STRING, ARRAY<INT>>, values: ARRAY<STRUCT<partition: STRING>>>, stop_replica:
        STRUCT<to: MAP<STRING, MAP<STRING, STRING>>>>').requests AS f FROM journal WHERE kind = 'send'), each AS (
    SELECT s.*, 'LeaderAndIsr' AS api, r.receiver, transform(r.named, i -> f.leader_and_isr.values[i].partition) AS partitions FROM sent s
    LATERAL VIEW explode(f.leader_and_isr.to) r AS receiver, named UNION ALL
    SELECT s.*, 'StopReplica', receiver, map_keys(named) FROM sent s LATERAL VIEW explode(f.stop_replica.to) r AS receiver, named UNION ALL
    SELECT *, 'UpdateMetadata', explode(f.update_metadata.to), map_keys(f.update_metadata.partitions) FROM sent
), answers AS (SELECT run, name, max_by(id, n) AS id, max_by(error, n) AS error FROM (SELECT run, n, id, f.correlation_id AS name,
    NULLIF(concat_ws(', ', array_sort(array_except(array_union(array(f.body.error), coalesce(map_values(f.body.errors), array())),
    array('NONE')))), '') AS error FROM (SELECT *, from_json(fields, 'correlation_id STRING, body STRUCT<error: STRING, errors: MAP<STRING,
    STRING>>') AS f FROM journal WHERE kind = 'respond') UNION ALL SELECT r.run, r.n, r.id, concat_ws('-', regexp_replace(q.cause,
    '[.]([0-9]+)$', concat('-', q.node, '-$1')), get_json_object(q.fields, '$.api')), NULL FROM journal r JOIN journal q ON q.run = r.run
    AND q.id = r.cause AND q.kind = 'receive' WHERE r.kind = 'response') GROUP BY ALL
), ends AS (SELECT run, name, max(n) AS n FROM (  -- of a broker's process, such as 2, and of a channel, such as 1>2
    SELECT run, n, CAST(broker AS STRING) AS name FROM broker_events WHERE event = 'stop' UNION ALL
    SELECT run, n, explode(transform(from_json(fields, 'to ARRAY<INT>').to, b -> concat(node, '>', b))) FROM journal
    WHERE kind = 'close_channels') GROUP BY ALL)
SELECT e.run, e.n, e.id AS record, e.time_ms, e.api, e.node AS sender, CAST(e.receiver AS INT) AS receiver, e.f.controller_epoch,
       e.partitions, CASE WHEN a.error IS NOT NULL THEN 'refused' WHEN a.id IS NOT NULL THEN 'answered'
       WHEN e.fields LIKE '%"line":"%' AND count(a.id) OVER (PARTITION BY e.run, e.node, e.receiver) = 0 THEN NULL
       WHEN greatest(x.n, y.n, z.n) > e.n THEN 'dropped' ELSE 'waiting' END AS state, a.error, a.id AS response_record
FROM each e LEFT JOIN answers a ON a.run = e.run AND a.name = concat(e.node, '.', e.incarnation, '-', e.receiver, '-', e.seq, '-', e.api)
LEFT JOIN ends x ON x.run = e.run AND x.name = e.receiver LEFT JOIN ends y ON y.run = e.run AND y.name = CAST(e.node AS STRING)
LEFT JOIN ends z ON z.run = e.run AND z.name = concat(e.node, '>', e.receiver)
