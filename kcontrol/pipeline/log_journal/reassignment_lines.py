"""Reads the log lines about reassignments of partitions, and records the begin and the end of each reassignment.

Up to 2.3 the request is in `/admin/reassign_partitions`; from 2.4 on the topic's znode has the added and the removed replicas
(KIP-455). In each release the controller logs the new assignment twice: at the begin the target replicas followed by the former
replicas, and at the end the target replicas alone. So the second line shows the target of the first; without the second line
the target is inferred.

Up to 2.3 "Handling reassignment" has the target too, and "Removed partition" shows the end of the request; without "Removed
partition" this end is inferred from the second line. Up to 2.3 the first line is missing if all target replicas are in the ISR
already; then the begin is inferred from the second line too.

Source: onPartitionReassignment of KafkaController.scala (0.8.1 to 3.9).
"""

from kcontrol.core.releases import sort_key
from kcontrol.core.znodes import REASSIGN_PARTITIONS, encode
from kcontrol.pipeline.log_journal.log_line import Line, named_partitions
from kcontrol.pipeline.log_journal.memory import RECORD, TIME, Memory
from kcontrol.pipeline.log_journal.processes import Processes


class ReassignmentLines:
    """The partitions that are being reassigned, as the log lines read so far show them.

    Each public method reads one line, and adds the records that follow from it to the journal of `memory`.
    """

    def __init__(self, memory: Memory, processes: Processes, release: str) -> None:
        self.memory, self.processes = memory, processes
        self._in_topic = sort_key(release) >= sort_key("2.4")
        self._targets: dict[str, list[int]] = {}
        self._read: set[str] = set()  # partitions whose first line about the present reassignment was read

    def started(self, line: Line) -> None:
        """The line "Handling reassignment" (up to 2.3); the time of the client's write is inferred."""
        if line.partition not in self._targets:
            self._targets[line.partition] = line.facts["replicas"]
            self._request(None, TIME)

    def updated(self, line: Line) -> None:
        """Record the new assignment in `line` as the begin, a later step or the end of the partition's reassignment."""
        tp, replicas = line.partition, line.facts.get("replicas") or line.facts.get("assignment") or []
        controller, former = line.facts["controller"], self.memory.assigned.get(tp)
        self.memory.ensure_running(controller)
        if tp not in self._targets:
            self._read.add(tp)
            self._begin(tp, replicas, former, controller)
        elif self._is_last(tp, replicas):
            self._end(tp, replicas, controller)
        else:
            self._read.add(tp)
            self.memory.assign({tp: replicas}, None)

    def _is_last(self, tp: str, replicas: list[int]) -> bool:
        """Whether this line is the last one about the reassignment of `tp`."""
        target, after = sorted(self._targets[tp]), self.processes.ahead.next(self.processes.position, "assigned", tp)
        more = (after.facts.get("replicas") or after.facts.get("assignment") or []) if after else []
        return sorted(replicas) == target and (tp in self._read or sorted(more) != target)

    def removed(self, line: Line) -> None:
        """Read the log line about partitions that leave `/admin/reassign_partitions`, and record the controller's write."""
        controller = line.facts["controller"]
        if not self._in_topic and [tp for tp in named_partitions(line) if self._targets.pop(tp, None) is not None]:
            self.memory.ensure_running(controller)
            self._request(controller, None)

    def _begin(self, tp: str, replicas: list[int], former: list[int] | None, controller: int) -> None:
        """Record the begin of the reassignment of `tp`, and also the end if this is the only line about the reassignment.

        `replicas` is the new assignment in the log line, `former` the assignment before.
        """
        after = self.processes.ahead.next(self.processes.position, "assigned", tp)
        last = (after.facts.get("replicas") or after.facts.get("assignment") or []) if after else []
        has_last = bool(last) and set(last) <= set(replicas)
        kept = set(former or ())
        if not kept <= set(replicas) or (kept == set(replicas) and not has_last and not self._in_topic):
            self._write(tp, former or [], former or [], replicas, RECORD)
            self._end(tp, replicas, controller)
            return
        self._write(tp, replicas, former or replicas, last if has_last else replicas, None if has_last else "target")

    def _write(self, tp: str, replicas: list[int], former: list[int], target: list[int], inferred: str | None) -> None:
        self._targets[tp] = target
        if self._in_topic:
            adding = [broker for broker in replicas if broker not in former]
            removing = [broker for broker in replicas if broker not in target]
            self.memory.assign({tp: replicas}, inferred, {tp: (adding, removing)})
        else:
            self._request(None, RECORD)
            self.memory.assign({tp: replicas}, None)

    def _end(self, tp: str, replicas: list[int], controller: int) -> None:
        if self._in_topic:
            del self._targets[tp]
            self._read.discard(tp)
            self.memory.assign({tp: replicas}, None, {tp: ([], [])})
            return
        self.memory.assign({tp: replicas}, None)
        if self.processes.ahead.next(self.processes.position, "reassigned", tp) is None:
            del self._targets[tp]
            self._request(controller, RECORD)

    def _request(self, by: int | None, inferred: str | None) -> None:
        """Record that the broker `by` (None: a client) writes the running reassignments to `/admin/reassign_partitions`.

        `inferred` is "record" if no log line shows the write, "time" if only its time is inferred, else None.
        """
        self._read &= self._targets.keys()
        if not self._targets:
            # Without a running reassignment the znode is deleted.
            self.memory.delete(by, None, inferred, REASSIGN_PARTITIONS)
            return
        asked = [
            {"topic": tp.rpartition("-")[0], "partition": int(tp.rpartition("-")[2]), "replicas": target}
            for tp, target in self._targets.items()
        ]
        self.memory.write(by, None, inferred, (REASSIGN_PARTITIONS, encode({"version": 1, "partitions": asked}).decode(), False))
