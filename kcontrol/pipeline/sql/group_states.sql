-- Each value of a group in the memory of its coordinator, in the order `step`; the end of the coordinator's process is the last.
WITH held AS (
    SELECT run, n, id AS record, time_ms, node AS coordinator, f.group_id, f.to, f.rule, f.group_metadata.state,
           f.group_metadata.generation, coalesce(f.group_metadata.members, map()) AS members
    FROM (SELECT *, from_json(fields, 'group_id STRING, to STRING, rule STRING, group_metadata STRUCT<state: STRING, generation: INT,
                              members: MAP<STRING, STRUCT<client_id: STRING>>>') AS f FROM journal WHERE kind = 'group')
), ended AS (
    SELECT b.run, b.n, b.record, b.time_ms, b.broker, h.group_id FROM broker_events b
    JOIN (SELECT run, coordinator, group_id, min(n) AS n FROM held GROUP BY ALL) h
         ON h.run = b.run AND h.coordinator = b.broker AND h.n < b.n WHERE b.event = 'stop'
)
SELECT *, row_number() OVER (PARTITION BY run, coordinator, group_id ORDER BY n) AS step FROM (
    SELECT * FROM held UNION ALL
    SELECT run, n, record, time_ms, broker, group_id, 'the coordinator has ended', NULL, NULL, NULL, map() FROM ended)
