-- Each rebalance of a group: from PreparingRebalance to the next state that is no part of the rebalance. `latest` is the group in
-- the latest state other than PreparingRebalance, and `last_state` that of the whole run, for a rebalance that has no end.
-- Rebalances of a group whose begins are at most 5 s apart are one disturbance; without a clock there is none.
WITH known AS (
    SELECT *, last(other, true) OVER (PARTITION BY run, coordinator, group_id ORDER BY n ROWS UNBOUNDED PRECEDING) AS latest,
           max_by(other, other.n) OVER (PARTITION BY run, coordinator, group_id) AS last_state
    FROM (SELECT *, IF(state <> 'PreparingRebalance', struct(n, generation, members), NULL) AS other FROM group_states)
), edges AS (
    SELECT *, lead(n) OVER w AS end_n, lead(record) OVER w AS end_record, lead(time_ms) OVER w AS end_ms, lead(to) OVER w AS ended_in,
           IF(lead(n) OVER w IS NULL, last_state, lead(latest) OVER w) AS after
    FROM known WHERE state IS DISTINCT FROM 'CompletingRebalance' WINDOW w AS (PARTITION BY run, coordinator, group_id ORDER BY n)
), found AS (
    SELECT run, n, record, group_id, coordinator, rule AS reason, time_ms AS begin_ms, end_ms, end_ms - time_ms AS duration_ms, end_n,
           end_record, ended_in, generation AS from_generation, IF(after.n > n, after.generation, generation) AS to_generation,
           sort_array(transform(map_values(IF(after.n > n, after.members, members)), m -> m.client_id)) AS members
    FROM edges WHERE state = 'PreparingRebalance'
), sessions AS (
    SELECT unix_millis(session_window.start) AS start_ms, collect_list(struct(*)) AS rebalances
    FROM found GROUP BY run, group_id, session_window(timestamp_millis(coalesce(begin_ms, 0)), '5 seconds')
)
SELECT row.*, IF(row.begin_ms IS NULL, NULL, start_ms) AS disturbance_begin_ms FROM sessions LATERAL VIEW explode(rebalances) AS row
