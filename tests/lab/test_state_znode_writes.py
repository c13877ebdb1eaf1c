"""What ZooKeeper held of a partition, write by write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from tests.lab.support import refusal
from tests.recordings.support import in_project

COLUMNS = ["written_by", "replicas", "adding_replicas", "removing_replicas", "leader", "isr", "leader_epoch"]
TOPIC, STATE = "/brokers/topics/t", "/brokers/topics/t/partitions/0/state"


def of_a_recording(path: Any) -> list[tuple[Any, ...]]:
    """What a recording's own writes say, one tuple for each that changes something: broker, three lists, leader, ISR, epoch."""
    found, held = [], dict.fromkeys(COLUMNS[1:])
    for write in (write for step in json.loads(path.read_text())["steps"] for write in step["writes"]):
        data, before = write.get("data"), dict(held)
        if write.get("path") == TOPIC:
            held |= {"replicas": data["partitions"]["0"]}
            held |= {name: data.get(name, {}).get("0", []) for name in ("adding_replicas", "removing_replicas")}
        elif write.get("path") == STATE:
            held |= {name: data[name] for name in ("leader", "isr", "leader_epoch")}
        if held != before:
            found.append((None if write["by"] == "tool" else write["by"], *held.values()))
    return found


@pytest.mark.parametrize("release", ["0.8.1.1", "2.8.2"])
@pytest.mark.parametrize("scenario", ["reassign-123-456", "reassign-controller-killed", "reassign-reorder"])
def test_it_is_what_real_brokers_wrote(release: str, scenario: str) -> None:
    """Of a recording the table has every write of the two znodes, as the file has it, in its order."""
    path = in_project(release, scenario)
    rows = [
        tuple(None if value is pd.NA else value for value in row)
        for row in Lab.open(path).tables.partition_history("t-0")[COLUMNS].itertuples(index=False)
    ]
    assert rows == of_a_recording(path) and len(rows) >= 7


def test_it_ends_with_what_is_so(lab: Lab) -> None:
    """The last row is what the table of partitions says, and a write that changes nothing has no row."""
    last = lab.kill(2).run().tables.partition_history("t-0").iloc[-1]
    assert last[["replicas", "leader", "isr", "leader_epoch"]].tolist() == [[2, 3], 3, [3], 1]
    before = len(lab.tables.partition_history("t-0"))
    assert len(lab.zk.set(STATE, lab.tables.znodes().text[STATE]).tables.partition_history("t-0")) == before


def test_a_write_of_a_client_has_no_writer(opened: Callable[..., Lab]) -> None:
    """The row of a client's write has no `written_by`, and a topic znode that cannot be read has no replicas."""
    lab = opened(2, topics={"t": [[1]]})
    before = len(lab.tables.partition_history("t-0"))
    lab.zk.set(TOPIC, '{"version":1,"partitions":{"0":[1,2]}}').zk.set(TOPIC, '{"version":1,"partitions":{"0":"nonsense"}}')
    lab.zk.set(TOPIC, '{"version":1,"partitions":{"0":[1]}}')
    found = lab.tables.partition_history("t-0").iloc[before:]
    assert found.replicas.tolist() == [[1, 2], None, [1]] and found.written_by.isna().all()


def test_what_is_refused_has_no_row(opened: Callable[..., Lab]) -> None:
    """A replaced controller wants to write an assignment and is refused: the table is as before."""
    lab = opened(3, topics={"t": [[2]]}).reassign({"t-0": [2, 3]}).run(until="ApiPartitionReassignment").step()
    before = len(lab.tables.partition_history("t-0"))
    lab.freeze(1).zk.delete("/controller").run().thaw(1).run()
    (refused,) = (r for r in lab.records if r.kind == "write" and r.id.node == 1 and r.fields["error"] == "BadVersion")
    assert refused.to_json().fields["ops"][0][1] == TOPIC and len(lab.tables.partition_history("t-0")) == before


def test_a_partition_that_is_not_there(lab: Lab) -> None:
    """The sentence lists the partitions that there are."""
    with pytest.raises(UserError) as problem:
        lab.tables.partition_history("t-9")
    assert "t-0" in refusal(problem)
