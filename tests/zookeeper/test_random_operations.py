"""Random operations drive the ZooKeeper in memory and a real one, and everything that can be seen is compared (see `agree`).

The programs are the same in every run; `--hypothesis-profile=default` makes new ones.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from kcontrol.core.effects import Op
from kcontrol.zookeeper.memory import MemoryZooKeeper
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from kcontrol.zookeeper.transaction_rules import OPERATIONS, Draft
from tests.zookeeper import agree
from tests.zookeeper.agree import play_on_both
from tests.zookeeper.programs import PROGRAMS, Command

pytestmark = pytest.mark.zookeeper


@pytest.mark.slow
@given(program=PROGRAMS)
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_memory_and_real_agree_on_600_random_programs(server: EmbeddedZooKeeper, program: list[Command]) -> None:
    """Six hundred programs are answered alike by both ZooKeepers; a failure prints the shortest one that shows it."""
    memory, real = play_on_both(server, program)
    assert memory == real


@pytest.mark.slow
def test_the_command_passes_where_both_agree(capsys: pytest.CaptureFixture[str]) -> None:
    """A hundred commands of `tests.zookeeper.agree` end with exit code 0 and with no failure in the last line."""
    assert agree.main(["--seed", "1", "--count", "100"]) == 0
    head, *_, last = capsys.readouterr().out.splitlines()
    assert head.startswith("seed 1: 100 commands in ")
    assert last.endswith(" passed, 0 failed")


@pytest.mark.slow
def test_the_command_fails_where_an_answer_differs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A memory that refuses every deletion gives exit code 1, and the first difference is printed with both answers."""

    def refuse(_draft: Draft, _op: Op) -> str:
        return "NotEmpty"

    monkeypatch.setitem(OPERATIONS, "delete", refuse)
    assert agree.main(["--seed", "1", "--count", "100"]) == 1
    first, memory, real, *_, last = capsys.readouterr().out.splitlines()
    assert "differs first in step" in first and "kind='delete'" in first
    assert "'NotEmpty'" in memory and memory[10:] != real[10:]
    assert not last.endswith(" 0 failed")


@pytest.mark.slow
def test_the_command_compares_the_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory whose tree is empty, with every answer right, gives exit code 1."""
    monkeypatch.setattr(MemoryZooKeeper, "tree", lambda _self: {})
    assert agree.main(["--seed", "1", "--count", "10"]) == 1
