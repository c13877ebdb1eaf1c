"""On the shell a problem is one sentence on stderr and status 1, without a traceback."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kcontrol import __version__
from tests.infra.processes import still_running
from tests.zookeeper.support import refused_port


def kcontrol(*arguments: str, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Runs the command line to its end."""
    command = [sys.executable, "-P", "-m", "kcontrol", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | (env or {}), check=False, timeout=60)


@pytest.fixture
def busy_port() -> Iterator[int]:
    """A loopback port with a listener that never answers."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def assert_one_sentence(done: "subprocess.CompletedProcess[str]", *words: str) -> None:
    """Asserts status 1 and a single line on stderr with these words."""
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("kcontrol: ")
    assert done.stderr.endswith(".\n")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [word for word in words if word not in done.stderr] == []


def test_an_unreachable_zookeeper() -> None:
    """On a port without a listener `zk get` prints one sentence with the command that starts a server, and nothing of kazoo."""
    with refused_port() as port:
        done = kcontrol("zk", "get", "-s", "/controller", "--zookeeper", f"127.0.0.1:{port}")
    assert_one_sentence(done, f"127.0.0.1:{port}", "zk start", "--zookeeper")


@pytest.mark.slow
def test_something_that_is_no_zookeeper(busy_port: int) -> None:
    """With a listener that never answers `zk get` ends with one sentence."""
    assert_one_sentence(kcontrol("zk", "get", "/", "--zookeeper", f"127.0.0.1:{busy_port}"), f"127.0.0.1:{busy_port}")


@pytest.mark.parametrize("address", ["localhost", "host:port", "127.0.0.1:0", "127.0.0.1:2181/", "127.0.0.1:2181/a//b", "::1"])
def test_an_address_that_is_none(address: str) -> None:
    """An address of another form is refused in a sentence with the legal form."""
    assert_one_sentence(kcontrol("zk", "get", "/", "--zookeeper", address), "host:port")


def test_no_address() -> None:
    """Without an address `zk get` says how to give one."""
    assert_one_sentence(kcontrol("zk", "get", "/", env={"KCONTROL_ZOOKEEPER": ""}), "--zookeeper", "KCONTROL_ZOOKEEPER")


@pytest.mark.parametrize("command", [["zk", "start"], pytest.param(["lab", "--no-browser"], marks=pytest.mark.slow)])
def test_a_port_in_use(command: list[str], busy_port: int, tmp_path: Path) -> None:
    """A server on a port that is in use says so, names the port and touches nothing."""
    folder = ["--dir", str(tmp_path / "work")] if command[0] == "lab" else []
    assert_one_sentence(kcontrol(*command, "--port", str(busy_port), *folder), f"Port {busy_port} is in use")
    assert not (tmp_path / "work").exists()


def test_no_java(tmp_path: Path) -> None:
    """Without Java, `zk start` says how to get one."""
    assert_one_sentence(kcontrol("zk", "start", env={"KCONTROL_JAVA_HOME": str(tmp_path)}), "KCONTROL_JAVA_HOME")


def test_an_unknown_command() -> None:
    """An unknown command is a usage error: status 2, no traceback."""
    done = kcontrol("frobnicate")
    assert done.returncode == 2
    assert "No such command 'frobnicate'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_version() -> None:
    """`--version` prints the version of the package."""
    assert kcontrol("--version").stdout == f"kcontrol {__version__}\n"


def test_a_broken_environment() -> None:
    """Where a package is missing, any command is one sentence that names the package, the version and the remedy."""
    code = "import sys; sys.modules['typer'] = None; from kcontrol.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"kcontrol {__version__}: The package typer is missing: delete .venv and run ./run lab, or pip install kcontrol again.\n"
    )


@pytest.mark.parametrize(
    ("command", "arguments", "words"),
    [
        ("pipeline runs", ["x"], "Missing option '--out'"),
        ("pipeline logs", ["--out", "x"], "Missing argument 'paths'"),
        ("pipeline offsets", ["x", "--out", "x", "--foo"], "No such option: --foo"),
        ("pipeline report", ["x", "y", "--out", "x"], "Got unexpected extra argument(s) (y)"),
        (
            "sweep",
            ["random deaths", "--seed", "x"],
            "Invalid value for '--seed': Input should be a valid integer, unable to parse string as an integer",
        ),
    ],
)
def test_a_wrong_use_of_the_pipeline_or_of_sweep(command: str, arguments: list[str], words: str) -> None:
    """Missing, unknown and illegal arguments are one sentence that names the help of the command."""
    done = kcontrol(*command.split(), *arguments)
    assert_one_sentence(done)
    assert done.stderr == f"kcontrol: {words}: run kcontrol {command} --help for its arguments, its options and their values.\n"


@pytest.mark.zookeeper
@pytest.mark.slow
def test_start_and_get() -> None:
    """`zk start` prints where it serves, `zk get -s` reads there, and Ctrl-C ends it in order."""
    with subprocess.Popen([sys.executable, "-P", "-m", "kcontrol", "zk", "start"], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            hosts = server.stdout.readline().split("; ")[0].removeprefix("ZooKeeper serves at ")
            done = kcontrol("zk", "get", "-s", "/zookeeper", env={"KCONTROL_ZOOKEEPER": hosts})
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.splitlines()[-1] == "numChildren = 2"
            assert_one_sentence(kcontrol("zk", "get", "/missing", "--zookeeper", hosts), "/missing", hosts)
            server.send_signal(2)
            rest, _ = server.communicate(timeout=30)
            assert rest.splitlines()[-1] == "ZooKeeper has ended."
            assert server.returncode == 0
        finally:
            server.kill()
    assert still_running([server.pid]) == []


RECORDING = Path(__file__).resolve().parents[2] / "notebooks" / "recordings" / "0.8.1.1" / "leader-killed.json"


def test_open_prints_what_was_done() -> None:
    """`open` prints the state in one line, each step of a recording, and each partition as it stands at the end."""
    done = kcontrol("open", str(RECORDING))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Kafka 0.8.1.1, leader-killed: 3 brokers, broker 1 is controller (epoch 1), 2 partitions online")
    assert any("Step 2 of the scenario: kill 2." in line for line in lines)
    assert lines[-1] == "t-1: OnlinePartition, leader 3, ISR [3, 1, 2], replicas [3, 1, 2], leader epoch 1"


def test_open_prints_kafkas_own_lines() -> None:
    """`open --log` prints nothing but lines as Kafka's release writes them to its logs, without times."""
    lines = kcontrol("open", "--log", str(RECORDING)).stdout.splitlines()
    assert len(lines) > 20
    assert [line for line in lines if not re.match("TRACE|DEBUG|INFO|WARN|ERROR", line) or not line.endswith(")")] == []
    assert any(
        "TRACE Controller 1 epoch 1 changed partition [t,0] from NewPartition to OnlinePartition" in line for line in lines
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="This system has no /dev/full.")
@pytest.mark.parametrize("command", [("open", "2.8.2/isr-order"), ("exercises", "list")])
def test_an_answer_that_cannot_be_written(command: tuple[str, ...]) -> None:
    """Where stdout is full, one sentence on stderr says so."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "kcontrol", *command], stdout=full, stderr=subprocess.PIPE, text=True,
            check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "kcontrol: The output cannot be written (No space left on device): write it to another place.\n"


def test_a_path_that_is_too_long() -> None:
    """A path of ten thousand characters is one short sentence."""
    done = kcontrol("open", "x" * 10_000)
    assert_one_sentence(done, "cannot be read", "too long")
    assert len(done.stderr) < 500


def test_open_writes_a_page(tmp_path: Path) -> None:
    """`open --html` writes a page with the run, and says where; where it cannot be written it says so."""
    page = tmp_path / "run.html"
    assert kcontrol("open", str(RECORDING), "--html", str(page)).stdout == f"{page} shows the run: open it in a browser.\n"
    assert "Step 2 of the scenario: kill 2." in page.read_text()
    assert_one_sentence(kcontrol("open", str(RECORDING), "--html", str(tmp_path / "no" / "run.html")), "No such file")


def test_open_writes_a_page_of_two_runs(tmp_path: Path) -> None:
    """`open --beside --html` writes a page with both runs; without a page it says in one sentence what to add."""
    page, names = tmp_path / "runs.html", [f"{release}/group/leader-leaves" for release in ("0.9.0.1", "2.8.2")]
    done = kcontrol("open", names[0], "--beside", names[1], "--html", str(page))
    assert done.stdout == f"{page} shows the runs: open it in a browser.\n"
    assert page.read_text().count('"svg":"') == 2 and '"other_name":"Kafka 2.8.2, group/leader-leaves"' in page.read_text()
    assert_one_sentence(kcontrol("open", names[0], "--beside", names[1]), "--html PAGE")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("hello", "is not a journal"),
        ('{"release": "2.8.2", "scenario": "x"', "broken JSON"),
        ('{"release": "2.8.2", "scenario": "x"}', "is not a recording of brokers"),
        (
            '{"id":[0,0,1],"kind":"run","cause":null,"at_ms":0,"fields":{"journal_version":9}}',
            "written by a later kcontrol; this one reads version 1",
        ),
        (None, "cannot be read"),
    ],
)
def test_open_refuses_what_is_no_run(content: str | None, words: str, tmp_path: Path) -> None:
    """What is neither journal nor recording, is cut off, of a later schema or not there is refused in one sentence."""
    path = tmp_path / "run.json"
    if content is not None:
        path.write_text(content)
    assert_one_sentence(kcontrol("open", str(path)), str(path), words)
