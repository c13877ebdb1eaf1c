-- Each rebalance of a group: from PreparingRebalance to the next state that is no part of the rebalance.
WITH edges AS (
    SELECT *, lead(n) OVER w AS end_n, lead(record) OVER w AS end_record, lead(time_ms) OVER w AS end_ms, lead(to) OVER w AS ended_in
    FROM group_states WHERE state IS DISTINCT FROM 'CompletingRebalance' WINDOW w AS (PARTITION BY run, coordinator, group_id ORDER BY n)
)
SELECT e.run, e.n, e.record, e.group_id, e.coordinator, e.rule AS reason, e.time_ms AS begin_ms, e.end_ms,
       e.end_ms - e.time_ms AS duration_ms, e.end_n, e.end_record, e.ended_in, e.generation AS from_generation,
       coalesce(max_by(g.generation, g.n), e.generation) AS to_generation,
       sort_array(transform(map_values(coalesce(max_by(g.members, g.n), any_value(e.members))), m -> m.client_id)) AS members
FROM edges e LEFT JOIN group_states g ON g.run = e.run AND g.coordinator = e.coordinator AND g.group_id = e.group_id
     AND g.n > e.n AND (e.end_n IS NULL OR g.n <= e.end_n) AND g.state <> 'PreparingRebalance'
WHERE e.state = 'PreparingRebalance' GROUP BY ALL
