"""A guarded child dies with its parent, however that dies."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kcontrol.zookeeper.server import watcher
from kcontrol.zookeeper.server.watcher import GuardedProcess
from tests.infra.processes import is_running, kill, python, still_running, wait_until_absent

PARENT = """
import sys
from pathlib import Path
from kcontrol.zookeeper.server.watcher import GuardedProcess
folder = Path(sys.argv[1])
child = GuardedProcess(["sh", "-c", sys.argv[2]], log=folder / "log", remove=folder)
print(child.pid, flush=True)
sys.stdin.read()
"""
FORK = """
import os, time
fork = os.fork()
if fork:
    print(fork, flush=True)
    sys.stdin.read()
else:
    time.sleep(600)
"""
LAST_WORDS = r"""
import os, signal, sys
def leave(number, frame):
    os.write(1, b"bye\n")
    sys.exit()
signal.signal(signal.SIGTERM, leave)
os.write(1, b"ready\n")  # In one write: an unbuffered print writes the end of its line later.
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_the_child_dies_with_its_parent(number: int, tmp_path: Path) -> None:
    """After any of these signals to the parent the child is gone, and so is the folder that goes with it."""
    folder = tmp_path / "data"
    folder.mkdir()
    with python(PARENT, str(folder), "exec sleep 600") as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.send_signal(number)
        assert still_running([child]) == []
        assert wait_until_absent(folder)


@pytest.mark.parametrize("ignored", [signal.SIGINT, signal.SIGHUP])
@pytest.mark.slow
def test_processes_of_tests_in_the_background_end_at_signals(ignored: int) -> None:
    """A pytest that was started with a signal ignored, as by `&` or nohup, starts processes that end at this signal."""
    test = f"{Path(__file__)}::test_the_child_dies_with_its_parent[{int(ignored)}]"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    done = subprocess.run(
        command, preexec_fn=lambda: signal.signal(ignored, signal.SIG_IGN), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_childs_own_children_die_too(tmp_path: Path) -> None:
    """What the child has started in its group ends with it, even if it ignores SIGTERM."""
    folder = tmp_path / "data"
    folder.mkdir()
    pid_file = tmp_path / "pid"
    script = f"trap '' TERM; sleep 600 & echo $! > '{pid_file}.new'; mv '{pid_file}.new' '{pid_file}'; wait"
    with python(PARENT, str(folder), script) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        while not pid_file.exists():
            assert is_running(child)
        grandchild = int(pid_file.read_text())
        parent.kill()
        assert still_running([child, grandchild]) == []


def test_a_fork_that_holds_the_pipe_does_not_save_the_child(tmp_path: Path) -> None:
    """A forked process inherits the parent's end of the pipe; the child ends all the same when the parent is killed."""
    code = PARENT.replace("sys.stdin.read()", FORK)
    folder = tmp_path / "data"
    folder.mkdir()
    with python(code, str(folder), "exec sleep 600") as parent:
        assert parent.stdout is not None
        child, fork = int(parent.stdout.readline()), int(parent.stdout.readline())
        try:
            parent.kill()
            assert still_running([child]) == []
            assert is_running(fork)
        finally:
            kill(fork)


def test_a_parent_that_was_gone_before_the_watcher_looked(tmp_path: Path) -> None:
    """A watcher whose parent is not the process that ordered it ends the child, though the pipe is open."""
    order = {"command": ["sleep", "600"], "parent": 1, "log": str(tmp_path / "log"), "grace_s": 0, "remove": None}
    command = [sys.executable, watcher.__file__, json.dumps(order)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = json.loads(process.stdout.readline())["pid"]
        assert still_running([child]) == []


@pytest.mark.skipif(sys.platform != "linux", reason="Only Linux can do this.")
def test_the_child_does_not_outlive_a_killed_watcher(tmp_path: Path) -> None:
    """A kill of the watcher between parent and child also ends the child."""
    with GuardedProcess(["sleep", "600"], log=tmp_path / "log") as child:
        kill(psutil.Process(child.pid).ppid())
        assert still_running([child.pid]) == []


def test_stop_ends_the_child_and_can_be_called_again(tmp_path: Path) -> None:
    """`stop` returns when the child is gone; a second call does nothing."""
    with GuardedProcess(["sleep", "600"], log=tmp_path / "log") as child:
        assert child.poll() is None
        child.stop()
        assert not is_running(child.pid)
        child.stop()


def test_a_child_with_grace_may_end_in_order(tmp_path: Path) -> None:
    """With `grace_s` the child gets SIGTERM first and may write its last words."""
    log = tmp_path / "log"
    child = GuardedProcess([sys.executable, "-c", LAST_WORDS], log=log, grace_s=30)
    while "ready\n" not in (log.read_text() if log.exists() else ""):
        assert child.poll() is None
    child.stop()
    assert log.read_text() == "ready\nbye\n"


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -9 $$", 128 + 9)])
def test_the_exit_status_is_the_childs(script: str, status: int, tmp_path: Path) -> None:
    """`wait` returns the child's own status, as a shell reports it."""
    with GuardedProcess(["sh", "-c", script], log=tmp_path / "log") as child:
        assert child.wait(30) == status
        assert child.poll() == status


def test_what_the_child_prints_is_in_the_log(tmp_path: Path) -> None:
    """Both output streams of the child go to the log, and its input is open and empty."""
    with GuardedProcess(["sh", "-c", "echo out; echo err >&2"], log=tmp_path / "log") as child:
        child.wait(30)
    assert (tmp_path / "log").read_text() == "out\nerr\n"
    with GuardedProcess(["cat"], log=tmp_path / "log") as child, pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.1)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """A command that cannot be started raises OSError with its name."""
    with pytest.raises(OSError, match="no-such-program"):
        GuardedProcess([tmp_path / "no-such-program"], log=tmp_path / "log")
