-- Each content of /controller: its broker, the controller epoch written in that time, and the record that ended it.
WITH held AS (
    SELECT *, lead(n) OVER w AS end_n, lead(record) OVER w AS end_record, lead(time_ms) OVER w AS end_ms, lead(op) OVER w AS end_op
    FROM znode_writes WHERE path = '/controller' WINDOW w AS (PARTITION BY run ORDER BY n)
)
SELECT h.run, h.n, h.record, try_cast(coalesce(get_json_object(h.data, '$.brokerid'), h.data) AS INT) AS broker,
       max_by(try_cast(e.data AS INT), e.n) AS controller_epoch, h.time_ms AS begin_ms, h.end_ms, h.end_ms - h.time_ms AS duration_ms,
       h.end_n, h.end_record,
       CASE h.end_op WHEN 'close' THEN 'session ended' WHEN 'delete' THEN 'znode deleted' WHEN 'set' THEN 'znode overwritten'
       END AS ended_by
FROM held h LEFT JOIN (SELECT * FROM znode_writes WHERE path = '/controller_epoch' AND op IN ('create', 'set')) e
     ON e.run = h.run AND e.n >= h.n AND (h.end_n IS NULL OR e.n < h.end_n)
WHERE h.op IN ('create', 'set')
GROUP BY ALL
