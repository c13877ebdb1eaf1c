-- Each write that changes the leader of a partition in ZooKeeper; leader -1 means no leader.
WITH named AS (
    SELECT *, lag(leader) OVER (PARTITION BY run, partition ORDER BY n) AS before FROM partition_states
)
SELECT s.run, s.n, s.record, j.at, j.at_ms, s.time_ms, s.zxid, s.partition, s.leader, s.leader_epoch, s.controller_epoch
FROM named s JOIN journal j ON j.run = s.run AND j.n = s.n
WHERE s.leader IS NOT NULL AND s.leader IS DISTINCT FROM s.before
