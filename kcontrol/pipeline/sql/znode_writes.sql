-- Each znode that a successful write has created, set or deleted, and each znode that the end of a session has deleted (close).
-- The writes of partition states by the controller's state machines are in partition_states.
SELECT run, n, id AS record, time_ms, node, f.zxid, w.op[0] AS op, w.op[1] AS path, w.op[2] AS data
FROM (SELECT *, from_json(fields, 'zxid BIGINT, error STRING, ops ARRAY<ARRAY<STRING>>') AS f FROM journal WHERE kind = 'write')
     LATERAL VIEW explode(f.ops) w AS op
WHERE f.error IS NULL AND w.op[0] IN ('create', 'set', 'delete')
UNION ALL
SELECT run, n, id, time_ms, f.broker, f.zxid, 'close', w.path, NULL
FROM (SELECT *, from_json(fields, 'broker INT, zxid BIGINT, deleted ARRAY<STRING>') AS f FROM journal WHERE kind = 'close')
     LATERAL VIEW explode(f.deleted) w AS path
