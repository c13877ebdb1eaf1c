-- Each offset of a commit that a coordinator has written to the log of __consumer_offsets, in a batch that begins at log_offset.
SELECT a.run, a.n, a.id AS record, a.time_ms, a.node AS coordinator, a.f.completion_event.group_id, o.partition, o.value.offset,
       o.value.metadata, a.f.partition AS log_partition, b.base_offset AS log_offset, b.id AS log_record
FROM (SELECT *, from_json(fields, 'partition STRING, completion_event STRUCT<event: STRING, group_id: STRING,
                          offsets: MAP<STRING, STRUCT<offset: BIGINT, metadata: STRING>>>') AS f FROM journal WHERE kind = 'append') a
JOIN (SELECT run, id, cause, coalesce(w.batch.base_offset, w.records[0].offset) AS base_offset
      FROM (SELECT *, from_json(fields, 'batch STRUCT<base_offset: BIGINT>, records ARRAY<STRUCT<offset: BIGINT>>') AS w FROM journal
            WHERE kind IN ('offsets_append', 'log_append'))) b ON b.run = a.run AND b.cause = a.id
LATERAL VIEW explode(a.f.completion_event.offsets) o AS partition, value
WHERE a.f.completion_event.event = 'OffsetsStored'
