-- Each write that changes the ISR of a partition in ZooKeeper: the ISR before and after, and the brokers that entered and left.
WITH named AS (
    SELECT *, lag(isr) OVER (PARTITION BY run, partition ORDER BY n) AS before FROM partition_states
)
SELECT run, n, record, time_ms, zxid, partition, node AS written_by, before, isr,
       array_except(isr, coalesce(before, array())) AS entered, array_except(coalesce(before, array()), isr) AS left, leader_epoch
FROM named WHERE isr IS NOT NULL AND isr IS DISTINCT FROM before
