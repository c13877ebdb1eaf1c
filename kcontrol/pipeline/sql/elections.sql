-- Each election of a leader after the first one. A leader that was not in the ISR is an unclean election. Recordings and logs of real
-- brokers may not have the rule: then the kind is NULL for an online partition, or if no ISR before is known.
WITH named AS (
    SELECT *, lag(leader) OVER w AS led_before, lag(isr) OVER w AS isr_before
    FROM partition_states WINDOW w AS (PARTITION BY run, partition ORDER BY n)
)
SELECT run, n, record, time_ms, zxid, partition, node AS controller, led_before, leader, isr_before, isr, leader_epoch,
       CASE WHEN rule = 'preferred' THEN 'preferred' WHEN rule = 'controlled_shutdown' THEN 'shutdown'
            WHEN rule = 'reassign' THEN 'reassignment' WHEN rule = 'unclean' THEN 'unclean' WHEN rule = 'offline' THEN 'clean'
            WHEN rule IS NULL AND (source = 'OnlinePartition' OR isr_before IS NULL) THEN NULL
            WHEN array_contains(isr_before, leader) THEN 'clean' ELSE 'unclean' END AS kind
FROM named WHERE source IN ('OfflinePartition', 'OnlinePartition')
