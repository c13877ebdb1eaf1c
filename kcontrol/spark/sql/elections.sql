-- Each election of a leader after the first one. A leader that was not in the ISR is an unclean election. A recording of real
-- brokers does not have the rule of a transition: there the kind of an election of an online partition is NULL.
WITH named AS (
    SELECT *, lag(leader) OVER w AS led_before, lag(isr) OVER w AS isr_before
    FROM partition_states WINDOW w AS (PARTITION BY run, partition ORDER BY n)
)
SELECT run, n, record, time_ms, zxid, partition, node AS controller, led_before, leader, isr_before, isr, leader_epoch,
       CASE WHEN rule = 'preferred' THEN 'preferred' WHEN rule = 'controlled_shutdown' THEN 'shutdown'
            WHEN rule = 'reassign' THEN 'reassignment' WHEN rule IS NULL AND source = 'OnlinePartition' THEN NULL
            WHEN array_contains(isr_before, leader) THEN 'clean' ELSE 'unclean' END AS kind
FROM named WHERE source IN ('OfflinePartition', 'OnlinePartition')
