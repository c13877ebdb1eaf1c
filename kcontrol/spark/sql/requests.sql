-- Each request of a controller to a broker: answered, refused with an error, waiting, or dropped when a process or channel ended.
WITH sent AS (
    SELECT *, from_json(fields, 'requests STRUCT<controller_epoch: INT, update_metadata: STRUCT<to: ARRAY<INT>>, leader_and_isr:
                        STRUCT<to: MAP<STRING, STRING>>, stop_replica: STRUCT<to: MAP<STRING, STRING>>>').requests AS f
    FROM journal WHERE kind = 'send'), each AS (
    SELECT *, 'LeaderAndIsr' AS api, explode(map_keys(f.leader_and_isr.to)) AS receiver FROM sent
    UNION ALL SELECT *, 'StopReplica', explode(map_keys(f.stop_replica.to)) FROM sent
    UNION ALL SELECT *, 'UpdateMetadata', explode(f.update_metadata.to) FROM sent
), answers AS (  -- a recording has no record of kind respond
    SELECT run, n, id, f.correlation_id AS name, f.body.error <> 'NONE' OR exists(map_values(f.body.errors), e -> e <> 'NONE') AS failed
    FROM (SELECT *, from_json(fields, 'correlation_id STRING, body STRUCT<error: STRING, errors: MAP<STRING, STRING>>') AS f
          FROM journal WHERE kind = 'respond')
    UNION ALL SELECT r.run, r.n, r.id, concat_ws('-', q.cause, q.node, get_json_object(q.fields, '$.api')), false
    FROM journal r JOIN journal q ON q.run = r.run AND q.id = r.cause AND q.kind = 'receive' WHERE r.kind = 'response'
), ends AS (
    SELECT run, n, broker, NULL AS sender FROM broker_events WHERE event = 'stop' UNION ALL
    SELECT run, n, explode(from_json(fields, 'to ARRAY<INT>').to), node FROM journal WHERE kind = 'close_channels'
)
SELECT e.run, e.n, e.id AS record, e.time_ms, e.api, e.node AS sender, CAST(e.receiver AS INT) AS receiver, e.f.controller_epoch,
       max_by(a.id, a.n) AS answer_record, CASE WHEN max_by(coalesce(a.failed, false), a.n) THEN 'refused'
       WHEN count(a.n) > 0 THEN 'answered' WHEN count(x.n) > 0 THEN 'dropped' ELSE 'waiting' END AS state
FROM each e LEFT JOIN answers a ON a.run = e.run AND a.name IN (concat_ws('-', e.id, e.receiver, e.api),
     concat(e.node, '.', e.incarnation, '-', e.receiver, '-', e.seq, '-', e.api)) LEFT JOIN ends x
     ON x.run = e.run AND x.n > e.n AND (x.broker = e.receiver AND coalesce(x.sender = e.node, true)
                                         OR x.broker = e.node AND x.sender IS NULL) GROUP BY ALL
