"""The official jars, fetched by a Maven that a script stands in for."""

from pathlib import Path

import pytest

from tests.kafka_jars import JarsMissing, jars

CALLS = "calls"
FETCHES = """
for setting in "$@"; do case $setting in -DoutputDirectory=*) folder=${setting#*=};; esac; done
mkdir -p "$folder" && : >"$folder/kafka.jar"
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH whose `mvn` fetches one jar, and an empty cache folder; gives the script."""
    script = tmp_path / "bin" / "mvn"
    script.parent.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    write(script, FETCHES)
    return script


def write(script: Path, body: str) -> None:
    """Make `mvn` do that, and note each call beside it."""
    script.write_text(f'#!/bin/sh\necho x >>"{script.with_name(CALLS)}"\n{body}')
    script.chmod(0o755)


def test_jars_are_fetched_once(maven: Path) -> None:
    """The second caller gets the folder that the first has filled, and Maven runs once."""
    first = jars("2.8.2")
    assert [path.name for path in first.iterdir()] == ["kafka.jar"]
    assert jars("2.8.2") == first
    assert maven.with_name(CALLS).read_text().split() == ["x"]


def test_a_release_has_a_folder_of_its_own(maven: Path) -> None:
    """Two releases never share jars."""
    assert jars("2.8.2") != jars("0.9.0.1")


def test_an_unknown_release_is_refused(maven: Path) -> None:
    """The sentence lists the releases that there are."""
    with pytest.raises(JarsMissing, match=r"no jars of Kafka 7\.0.*0\.8\.0.*3\.9\.1"):
        jars("7.0")


def test_without_maven(maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says that Maven is missing."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(JarsMissing, match=r"Maven.*is not on PATH: install"):
        jars("2.8.2")


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        ("Could not find artifact org.apache.kafka:kafka_2.13:jar:2.8.2 in central", "repository answers, but has no such jars"),
        ("Could not transfer artifact org.apache.kafka:kafka_2.13:pom:2.8.2: Connection refused", "repository does not answer"),
        ("No plugin found for prefix 'dependency' in the current project", "repository does not answer"),
    ],
)
def test_the_reason_says_whether_the_repository_answers(maven: Path, printed: str, said: str) -> None:
    """A repository without the jars and one that does not answer have different errors, and the cache keeps no half file."""
    write(maven, f'echo "[ERROR] Failed to execute goal: {printed}" && exit 1')
    with pytest.raises(JarsMissing, match=said):
        jars("2.8.2")
    write(maven, FETCHES)
    assert any(jars("2.8.2").iterdir())
