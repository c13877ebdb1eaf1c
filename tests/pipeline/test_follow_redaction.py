"""`--follow` with `--redact`: stable names are equal in each round and after a kill, and equal those of one batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kcontrol.cli import app
from kcontrol.core.errors import UserError
from kcontrol.pipeline.follow import checkpoint, follow
from kcontrol.pipeline.follow.follow import Following
from kcontrol.pipeline.logs import log_tables
from kcontrol.pipeline.pipeline import ALL
from kcontrol.pipeline.redaction.stable_names import Redaction
from tests.pipeline.log_rows import Row, rows_of

REDACTION = Redaction(("topic", "host", "client"), b"a key")
NAMES = ("payroll", "wages", "vault.corp.example", "prod-rack7")
KC, AT = "(kafka.controller.KafkaController)", "2019-05-06 07:08:09,12"
CHANGED = "Controller 3 epoch 8 changed partition [{},1] from OfflinePartition to OnlinePartition with leader 2"
FIRST = [
    f"[{AT}1] TRACE {CHANGED.format('payroll')} (state.change.logger)",
    # No place for names: only a later line shows that these are a topic and a host.
    f"[{AT}2] INFO something of wages and vault.corp.example and payroll {KC}",
    "  no record at all, of wages",
    # The last record of a file is read again in the next round; the records before it are not.
    f"[{AT}2] INFO the end {KC}",
]
LATER = [
    f"[{AT}3] TRACE {CHANGED.format('wages')} (state.change.logger)",
    f"[{AT}4] INFO Opening socket connection to server vault.corp.example/10.20.30.40:2181 (org.apache.zookeeper.ClientCnxn)",
    f"[{AT}5] TRACE {CHANGED.format('payroll')} (state.change.logger)",
]


class Killed(BaseException):
    """The end of the process."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log with the first lines, in a folder with a name of its own."""
    path = tmp_path / "logs" / "prod-rack7" / "server.log"
    path.parent.mkdir(parents=True)
    path.write_text("\n".join(FIRST) + "\n")
    return path


def read(spark: Any, log: Path, out: Path) -> dict[str, list[Row]]:
    """Follow the folder of the log until all lines are in the tables, in a new call; return the rows of both tables."""
    with checkpoint.opened(out, [log.parent.parent], REDACTION) as state:
        asked = Following(spark, [log.parent.parent], out, ALL, lambda _: None, of_runs=False, redact=REDACTION)
        list(follow.follow(asked, state, once=True, wait=lambda: None))
    return tables(out)


def tables(out: Path) -> dict[str, list[Row]]:
    return {name: sorted(rows_of(out, name), key=repr) for name in log_tables.TABLES}


@pytest.mark.spark
@pytest.mark.slow
def test_names_that_come_later_change_no_earlier_stable_name(
    spark: Any, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each round, and after a process that is killed in a round, the tables equal those of one batch of the same lines."""
    # A name that only a later round knows is replaced in the rows of the earlier rounds too, and no other row changes.
    out = tmp_path / "out"
    before = read(spark, log, out)
    with log.open("a") as file:
        file.write("\n".join(LATER) + "\n")
    with monkeypatch.context() as patched:

        def killed(*_: Any) -> None:
            raise Killed

        patched.setattr(follow, "save", killed)
        with pytest.raises(Killed):
            read(spark, log, out)
    after = read(spark, log, out)
    log_tables.write_logs(spark, [log.parent.parent], tmp_path / "batch", redact=REDACTION)
    assert after == tables(tmp_path / "batch")
    assert [name for name in NAMES if name in str(after)] == []
    first, second, _ = sorted(before["records"], key=lambda row: row["n"])
    assert first in after["records"] and first["facts"]["topic"] == REDACTION.stable("topic", "payroll")
    assert "wages" in second["raw"] and REDACTION.letters("payroll") in second["raw"]
    for path in (path for name in log_tables.TABLES for path in (out / name).rglob("*") if path.is_file()):
        assert [name for name in NAMES if name.encode() in path.read_bytes()] == []


def test_a_folder_that_follows_keeps_its_redaction(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call with other kinds of names, or without --redact, is one sentence, and the checkpoint stays."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with checkpoint.opened(tmp_path / "out", [log.parent], REDACTION) as state:
        checkpoint.save(tmp_path / "out", state)
    call = ["pipeline", "logs", str(log.parent), "--out", str(tmp_path / "out"), "--follow", "--available-now"]
    for more in ([], ["--redact", "topics"]):
        done = CliRunner().invoke(app, [*call, *more])
        assert isinstance(done.exception, UserError)
        words = "has tables with --redact clients,hosts,topics: use --redact clients,hosts,topics again, or name another"
        words += " folder for the tables."
        assert str(done.exception) == f"{tmp_path / 'out'} {words}"
