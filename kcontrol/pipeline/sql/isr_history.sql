-- Each write that changes the ISR of a partition in ZooKeeper: the ISR before and after, and the brokers that entered and left.
WITH named AS (
    SELECT *, lag(isr) OVER (PARTITION BY run, partition ORDER BY n) AS isr_before FROM partition_states
)
SELECT run, n, record, time_ms, zxid, partition, node AS written_by, isr_before, isr,
       array_except(isr, coalesce(isr_before, array())) AS entered, array_except(coalesce(isr_before, array()), isr) AS left, leader_epoch
FROM named WHERE isr IS NOT NULL AND isr IS DISTINCT FROM isr_before
