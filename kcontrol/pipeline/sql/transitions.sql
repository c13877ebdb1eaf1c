-- Each transition of a partition or of a replica in the memory of a controller, with the rule that decided it.
SELECT run, n, id AS record, time_ms, node AS controller, f.machine, regexp_replace(f.subject, '@[0-9]+$', '') AS partition,
       CAST(NULLIF(regexp_extract(f.subject, '@([0-9]+)$', 1), '') AS INT) AS replica, f.source, f.target,
       NULLIF(f.rule, '') AS rule, f.write
FROM (SELECT *, from_json(fields, 'machine STRING, subject STRING, source STRING, target STRING, rule STRING, write STRING') AS f
      FROM journal WHERE kind = 'change')
