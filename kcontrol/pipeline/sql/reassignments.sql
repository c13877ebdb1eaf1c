-- Each time in which /admin/reassign_partitions names a partition, or its topic's znode has added or removed replicas (since 2.4).
WITH writes AS (
    SELECT run, n, record, time_ms, NULL AS topic, transform(from_json(data, 'partitions ARRAY<STRUCT<topic: STRING, partition: INT,
           replicas: ARRAY<INT>>>').partitions, p -> struct(concat(p.topic, '-', p.partition) AS name, p.replicas AS target)) AS moving
    FROM znode_writes WHERE path = '/admin/reassign_partitions'
    UNION ALL
    SELECT run, n, record, time_ms, topic, transform(array_union(map_keys(f.adding_replicas), map_keys(f.removing_replicas)),
           p -> struct(concat(topic, '-', p) AS name, array_except(f.partitions[p], coalesce(f.removing_replicas[p], array())) AS target))
    FROM (SELECT *, substr(path, 17) AS topic, from_json(data, 'partitions MAP<STRING, ARRAY<INT>>, adding_replicas MAP<STRING,
                 ARRAY<INT>>, removing_replicas MAP<STRING, ARRAY<INT>>') AS f FROM znode_writes WHERE path RLIKE '^/brokers/topics/[^/]+$')
), points AS (
    SELECT w.*, p.name, get(filter(w.moving, m -> m.name = p.name), 0).target AS target
    FROM writes w JOIN (SELECT DISTINCT run, m.name FROM writes LATERAL VIEW explode(moving) v AS m) p ON p.run = w.run
         AND (w.topic IS NULL OR w.topic = regexp_replace(p.name, '-[0-9]+$', ''))
), states AS (
    SELECT *, coalesce(last(IF(topic IS NULL, NULL, target IS NOT NULL), true) OVER v, false)
              OR coalesce(last(IF(topic IS NULL, target IS NOT NULL, NULL), true) OVER v, false) AS moves
    FROM points WINDOW v AS (PARTITION BY run, name ORDER BY n)
), edges AS (
    SELECT *, lead(n) OVER w AS end_n, lead(record) OVER w AS end_record, lead(time_ms) OVER w AS end_ms
    FROM (SELECT *, lag(moves, 1, false) OVER (PARTITION BY run, name ORDER BY n) AS moved FROM states)
    WHERE moves <> moved WINDOW w AS (PARTITION BY run, name ORDER BY n)
)
SELECT run, n, record, name AS partition, target, time_ms AS begin_ms, end_ms, end_ms - time_ms AS duration_ms, end_n, end_record FROM edges
WHERE moves
