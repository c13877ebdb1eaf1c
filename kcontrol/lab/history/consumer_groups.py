"""Yields the rows of tables about consumer groups: rebalances, members from joining to leaving, and committed offsets.

A rebalance begins and ends with records of its states: a gap in time would join two rebalances or cut a long one. Rebalances of a
group whose begins are at most 5 s apart are one disturbance, with one `disturbance_begin_ms`.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from kcontrol.lab.history.entries import Entries, Entry, Row, interval

PREPARING, COMPLETING = "PreparingRebalance", "CompletingRebalance"
DISTURBANCE_GAP_MS = 5_000
COORDINATOR_ENDED = "the coordinator has ended"

Key = tuple[int, str]
"""A coordinator and a group id."""


def _histories(run: Entries) -> dict[Key, list[Entry]]:
    """Return, by coordinator and group id, the journal records that change the group, in the order of the journal.

    The list also has the `stop` records of the coordinator's process after the group's first record.
    """
    found: dict[Key, list[Entry]] = defaultdict(list)
    for entry in run.of("group", "stop"):
        if entry.r.kind == "group":
            found[entry.r.id.node, entry.r.fields["group_id"]].append(entry)
        else:
            for (broker, _), history in found.items():
                if broker == entry.r.fields["broker"]:
                    history.append(entry)
    return found


def _group(entry: Entry) -> dict[str, Any]:
    """The group after a record; {} if the record removes it, or ends the coordinator's process."""
    return entry.r.fields.get("group_metadata") or {}


def rebalances(run: Entries) -> Iterator[Row]:
    """Each rebalance of a group, with its reason, generations and members.

    It lasts from PreparingRebalance to the next state other than CompletingRebalance. The end of the coordinator's process ends
    the rebalance too. `members` are the client ids at the end, sorted. `disturbance_begin_ms` is the begin of the first of
    several rebalances whose begins are at most 5 s apart.
    """
    by_group: dict[str, list[Row]] = defaultdict(list)
    for (coordinator, group), history in _histories(run).items():
        for position, entry in enumerate(history):
            if _group(entry).get("state") == PREPARING:
                row = {"group_id": group, "coordinator": coordinator, "reason": entry.r.fields["rule"]}
                by_group[group].append(row | _rebalance(entry, history[position + 1 :]))
    for rows in by_group.values():
        yield from _with_disturbances(rows)


def _with_disturbances(rows: list[Row]) -> Iterator[Row]:
    """Yield the rebalances of one group with `disturbance_begin_ms`, the begin of a series of rebalances in quick succession.

    A rebalance that begins at most 5 s after the begin of the rebalance before it belongs to that rebalance's series. In a run
    without a clock the value is None.
    """
    begin_ms = before_ms = None
    for row in sorted(rows, key=lambda row: row["begin_ms"] or 0):
        if before_ms is None or row["begin_ms"] - before_ms > DISTURBANCE_GAP_MS:
            begin_ms = row["begin_ms"]
        before_ms = row["begin_ms"]
        yield row | {"disturbance_begin_ms": begin_ms}


def _rebalance(begin: Entry, later: list[Entry]) -> Row:
    end, last = None, begin
    for entry in later:
        state = _group(entry).get("state")
        last = entry if state not in (None, PREPARING) else last
        if state != COMPLETING:
            end = entry
            break
    return interval(begin, end) | {
        "ended_in": end and end.r.fields.get("to", COORDINATOR_ENDED),
        "from_generation": _group(begin)["generation"],
        "to_generation": _group(last)["generation"],
        "members": sorted(member["client_id"] for member in _group(last)["members"].values()),
    }


def member_lives(run: Entries) -> Iterator[Row]:
    """Each member of a group: the time in which a coordinator has the member in its memory.

    A static member that gets a new member id has a row for each id.
    """
    # The row of a member that the coordinator has loaded begins with the group's next transition (docs/omissions.md).
    for (coordinator, group), history in _histories(run).items():
        lives: dict[str, Row] = {}
        for entry in history:
            members, generation = _group(entry).get("members", {}), _group(entry).get("generation")
            for name in [name for name in lives if name not in members]:
                yield _life(lives.pop(name), entry)
            for name, member in members.items():
                begun = {"begin": entry, "coordinator": coordinator, "group_id": group, "member_id": name}
                new = begun | {"client_id": member["client_id"], "first_generation": generation}
                lives[name] = lives.get(name, new) | {"last_generation": generation}
        yield from (_life(life, None) for life in lives.values())


def _life(life: Row, end: Entry | None) -> Row:
    begin = life.pop("begin")
    return interval(begin, end) | life


def commits(run: Entries) -> Iterator[Row]:
    """Each offset of a commit that a coordinator has written to the log of the offsets topic.

    A commit whose write failed has no rows. `log_offset` is the offset of the first record of the batch.
    """
    written = {e.r.cause: e for e in (*run.of("offsets_append"), *run.of("log_append"))}
    for entry in run.of("append"):
        event = entry.r.fields["completion_event"] or {}
        if event.get("event") != "OffsetsStored" or (batch := written.get(entry.r.id)) is None:
            continue
        for partition, stored in event["offsets"].items():
            yield entry.evidence | {
                "coordinator": entry.r.id.broker,
                "group_id": event["group_id"],
                "partition": partition,
                "offset": stored["offset"],
                "metadata": stored["metadata"],
                "log_partition": entry.r.fields["partition"],
                "log_offset": _base_offset(batch.r.fields),
                "log_record": str(batch.r.id),
            }


def _base_offset(fields: Row) -> int:
    """Return the offset of the first record of a write to a log; `fields` are those of the journal record of this write."""
    # A journal made from a recording has the offset in `batch`, any other journal in `records`.
    found: int = fields["batch"]["base_offset"] if "batch" in fields else fields["records"][0]["offset"]
    return found
