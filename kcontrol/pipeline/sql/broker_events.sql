-- Each start, stop, freeze and thaw of a broker's process, and each request that makes a broker leader of a partition (lead).
SELECT run, n, id AS record, time_ms, kind AS event, f.broker, f.incarnation, f.exit_code, CAST(NULL AS STRING) AS partition
FROM (SELECT *, from_json(fields, 'broker INT, incarnation INT, exit_code INT') AS f
      FROM journal WHERE kind IN ('start', 'stop', 'freeze', 'thaw'))
UNION ALL
SELECT a.run, a.n, a.id, a.time_ms, 'lead', a.node, a.incarnation, NULL, v.value.partition
FROM (SELECT *, from_json(fields, 'field STRING, request ARRAY<BIGINT>, partitions ARRAY<STRING>') AS f
      FROM journal WHERE kind = 'apply_request') a
JOIN (SELECT run, id, from_json(fields, 'requests STRUCT<leader_and_isr: STRUCT<to: MAP<STRING, ARRAY<INT>>,
             values: ARRAY<STRUCT<partition: STRING, leader: INT>>>>').requests.leader_and_isr AS sent
      FROM journal WHERE kind = 'send') s ON s.run = a.run AND s.id = concat_ws('.', a.f.request)
LATERAL VIEW posexplode(s.sent.values) v AS position, value
WHERE a.f.field = 'hosted' AND v.value.leader = a.node AND array_contains(s.sent.to[CAST(a.node AS STRING)], v.position)
      AND (a.f.partitions IS NULL OR array_contains(a.f.partitions, v.value.partition))
