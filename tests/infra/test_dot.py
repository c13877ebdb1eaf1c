"""Our `dot` draws where there is none, and gives way to the machine's own."""

import os
import subprocess
import sys
from pathlib import Path

import graphviz
import pytest

DOT = Path(sys.executable).parent / "dot"
GRAPH = 'digraph { a [label="Ä <b>"]; a -> b [label="go"] }'


def dot(*arguments: str, source: str = "", path: str = "") -> "subprocess.CompletedProcess[bytes]":
    """Runs our script with nothing but this PATH."""
    env = {"PATH": path or str(DOT.parent), "HOME": os.environ.get("HOME", "")}
    return subprocess.run([DOT, *arguments], input=source.encode(), env=env, capture_output=True, check=False, timeout=60)


def test_from_stdin_to_stdout() -> None:
    """`dot -Tsvg` reads a graph and writes an SVG with its labels; Fontconfig prints nothing."""
    done = dot("-Kdot", "-Tsvg", source=GRAPH)
    assert (done.returncode, done.stderr) == (0, b"")
    svg = done.stdout.decode()
    assert svg.rstrip().endswith("</svg>")
    assert "Ä &lt;b&gt;" in svg
    assert svg.count('class="node"') == 2
    assert svg.count('class="edge"') == 1


def test_beside_the_file(tmp_path: Path) -> None:
    """`-O` writes each picture beside its source, in the format asked for."""
    for name in ("one.gv", "two words.gv"):
        (tmp_path / name).write_text(GRAPH)
    done = dot("-Kdot", "-Tpng", "-O", str(tmp_path / "one.gv"), str(tmp_path / "two words.gv"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert all((tmp_path / f"{name}.gv.png").read_bytes().startswith(b"\x89PNG") for name in ("one", "two words"))


def test_another_engine_and_attributes() -> None:
    """`-K` chooses the layout, `-G` and `-N` set attributes."""
    assert dot("-Kneato", "-Tsvg", source=GRAPH).stdout != dot("-Kdot", "-Tsvg", source=GRAPH).stdout
    assert b"#123456" in dot("-Tsvg", "-Gbgcolor=#123456", source=GRAPH).stdout


def test_the_graphviz_package_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With nothing but our script on PATH, a Digraph knows the version of dot, is shown in a notebook and renders to a file."""
    monkeypatch.setenv("PATH", str(DOT.parent))
    graph = graphviz.Digraph("machine")
    graph.edge("New", "Online")
    assert graphviz.version() >= (14,)
    assert "<svg" in graph._repr_mimebundle_()["image/svg+xml"]
    assert Path(graph.render(tmp_path / "machine.gv", format="svg")).read_text().count('class="edge"') == 1


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        (("-Tsvg",), "digraph {"),
        (("-Tsvg",), "no graph"),
        (("-Tnothing",), GRAPH),
        (("-Knothing", "-Tsvg"), GRAPH),
        (("-Z",), ""),
        (("-Tsvg", "/no/such/file"), ""),
    ],
)
def test_what_cannot_be_drawn(arguments: tuple[str, ...], source: str) -> None:
    """A broken graph, format, engine, option or file gives status 1 and a message, no picture and no traceback."""
    done = dot(*arguments, source=source)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.strip()
    assert b"Traceback" not in done.stderr


def test_the_machines_own_dot_comes_first(tmp_path: Path) -> None:
    """Where another `dot` is on PATH, before or after ours, that one is called with the same arguments."""
    other = tmp_path / "dot"
    other.write_text('#!/bin/sh\necho "own: $*"\n')
    other.chmod(0o755)
    for path in (f"{tmp_path}:{DOT.parent}", f"{DOT.parent}:{tmp_path}"):
        assert dot("-Tsvg", "a b", path=path).stdout == b"own: -Tsvg a b\n"


def test_two_stand_ins_do_not_call_each_other_for_ever(tmp_path: Path) -> None:
    """If the other `dot` is a second stand-in, it draws."""
    copy = tmp_path / "dot"
    copy.write_text(DOT.read_text())
    copy.chmod(0o755)
    done = dot("-Tsvg", source=GRAPH, path=f"{DOT.parent}:{tmp_path}")
    assert done.returncode == 0
    assert b"</svg>" in done.stdout
