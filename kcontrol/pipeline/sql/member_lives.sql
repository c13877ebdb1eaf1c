-- Gaps and islands: each time in which a coordinator's memory has a member of a group; `step` counts the values of the group.
WITH seen AS (
    SELECT run, n, record, time_ms, coordinator, group_id, generation, step, m.member_id, m.member.client_id
    FROM group_states LATERAL VIEW explode(members) m AS member_id, member
), islands AS (
    SELECT *, step - row_number() OVER (PARTITION BY run, coordinator, group_id, member_id ORDER BY step) AS island FROM seen
), lives AS (
    SELECT run, coordinator, group_id, member_id, min(n) AS n, min_by(record, n) AS record, min_by(client_id, n) AS client_id,
           min_by(time_ms, n) AS begin_ms, max(step) + 1 AS end_step, min_by(generation, n) AS first_generation,
           max_by(generation, n) AS last_generation
    FROM islands GROUP BY run, coordinator, group_id, member_id, island
)
SELECT l.run, l.n, l.record, l.group_id, l.coordinator, l.member_id, l.client_id, l.begin_ms, g.time_ms AS end_ms,
       g.time_ms - l.begin_ms AS duration_ms, g.n AS end_n, g.record AS end_record, l.first_generation, l.last_generation
FROM lives l LEFT JOIN group_states g ON g.run = l.run AND g.coordinator = l.coordinator AND g.group_id = l.group_id
     AND g.step = l.end_step
