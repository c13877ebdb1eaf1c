"""Computes the values of the lines that leaders log about their changes of ISRs, and controllers about elections up to 1.0.

The texts are rows of `kafka_logs/log_lines.tsv`.

Source: Partition.expandIsr, shrinkIsr and updateIsr (0.8.0 to 3.9), OfflinePartitionLeaderSelector.selectLeader (0.8.0 to 1.0).
"""

from collections.abc import Collection, Iterator
from typing import Any

from kcontrol.core.znodes import parse_state_path
from kcontrol.journal.journal import Record

Line = tuple[str, dict[str, Any]]
"""The kind of a line in `log_lines.tsv`, and its facts."""


class IsrWords:
    """Finds, record by record, the lines that leaders log about their changes of ISRs."""

    def __init__(self) -> None:
        self._pending: dict[tuple[int, str], dict[str, Any]] = {}  # leader, partition -> the leadership before its change

    def lines(self, r: Record) -> Iterator[Line]:
        """Yield (kind, values), such as ("isr_shrunk", {...}), for each line that Kafka logs at `r`, the next journal record."""
        f = r.fields
        if r.kind == "start":
            self._pending = {key: value for key, value in self._pending.items() if key[0] != f["broker"]}
        elif r.kind == "update" and (f["context"], f["field"]) == ("broker", "hosted"):
            for tp, held in (f["put"] or {}).items():
                yield from self._hosted(r.id.node, tp, held)
        elif r.kind == "write" and f["error"] is not None:
            for _, path, *_ in f["ops"]:
                before = self._pending.get((r.id.node, str(parse_state_path(path))))
                if before is not None:
                    yield "isr_update_stale", {"tp": str(parse_state_path(path)), "zk_version": before["zk_version"]}

    def _hosted(self, broker: int, tp: str, held: dict[str, Any]) -> Iterator[Line]:
        """Yield the line that the leader `broker` writes to Kafka's log when it begins or ends a change of the ISR of `tp`.

        Yield nothing otherwise. `held` has the leadership and the pending ISR in the broker's memory after the journal record.
        """
        now, asked, key = held["leadership"], held["pending_isr"], (broker, tp)
        if asked:
            kind = "isr_expanded" if len(asked) > len(now["isr"]) else "isr_shrunk"
            self._pending[key] = now
            yield kind, {"tp": tp, "isr_from": now["isr"], "isr_to": asked}
        elif (before := self._pending.pop(key, None)) is not None and before["zk_version"] != now["zk_version"]:
            yield "isr_updated", {"tp": tp, "isr": now["isr"], "zk_version": now["zk_version"]}


def election(f: dict[str, Any], live: Collection[int]) -> Iterator[Line]:
    """The log lines about an offline partition's election, such as ("clean_election", {...}); `live` are its live replicas."""
    chosen, rule = f["leadership"], f.get("rule")
    if f["source"] != "OfflinePartition" or rule not in ("offline", "unclean"):
        return
    found = {"tp": f["subject"], "leader": chosen["leader"], "isr": chosen["isr"]}
    yield ("clean_election", found) if rule == "offline" else ("unclean_election", found | {"live": live})
    yield "leader_selected", found | {"leader_epoch": chosen["leader_epoch"]}
