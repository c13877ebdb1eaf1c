"""JupyterLab opens on the learner's folder, on this machine alone, and takes everything with it when it ends."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import websocket

from kcontrol.install.process_cleanup import MARK
from kcontrol.install.workspace import shipped
from tests.infra.processes import is_running, kill, still_running, wait_until_absent
from tests.parts import ROOT

# A proxy that is set on the machine does not lead to this machine's own ports.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
EVERYTHING = """
import subprocess
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from kcontrol.pipeline import gateway
server = EmbeddedZooKeeper().start()
gateway.spark_session().sql("select 1").collect()
detached = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(server.pid, gateway._gateway.pid, detached.pid, flush=True)
"""
LITTLE = """
import subprocess
detached = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(detached.pid, flush=True)
"""


@dataclass
class Lab:
    """A running lab: its process, the address it printed, and its folder."""

    process: "subprocess.Popen[str]"
    address: str
    folder: Path
    welcome: list[str]

    def ask(self, path: str, method: str = "GET", body: dict[str, Any] | None = None) -> Any:
        """Asks the server's API, with the token, and returns what it answers."""
        url = urllib.parse.urlsplit(self.address)
        token = urllib.parse.parse_qs(url.query)["token"][0]
        request = urllib.request.Request(
            f"http://{url.netloc}{path}", method=method, data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"token {token}"},
        )  # fmt: skip
        with OPENER.open(request, timeout=60) as answer:
            return json.load(answer)

    def run_in_kernel(self, code: str) -> list[int]:
        """Runs the code in a kernel over a web socket, as a browser does; returns its process id and those that it prints."""
        kernel = self.ask("/api/kernels", "POST", {"name": "python3"})["id"]
        url = urllib.parse.urlsplit(self.address)
        channels = websocket.create_connection(
            f"ws://{url.netloc}/api/kernels/{kernel}/channels?{url.query}", timeout=120, http_no_proxy=["127.0.0.1"]
        )
        header = {"msg_id": "one", "msg_type": "execute_request", "version": "5.3", "username": "", "session": "test"}
        content = {"code": f"import os; print(os.getpid(), flush=True)\n{code}", "silent": False, "store_history": False}
        channels.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}))
        printed = ""
        while (message := json.loads(channels.recv()))["header"]["msg_type"] != "execute_reply":
            printed += message["content"].get("text", "") if message["header"]["msg_type"] == "stream" else ""
        channels.close()
        assert message["content"]["status"] == "ok", message["content"]
        return [int(pid) for pid in printed.split()]

    def started(self) -> list[int]:
        runtime = str(self.runtime())
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) and process.environ().get("JUPYTER_RUNTIME_DIR") == runtime:
                    found.append(process.pid)
        return found

    def runtime(self) -> Path:
        """Returns the folder of the kernels' connection files, which is the lab's own."""
        kernels = (p.cmdline() for p in psutil.Process(self.process.pid).children() if "ipykernel_launcher" in p.cmdline())
        return Path(next(kernels)[-1]).parent


def at_home(home: Path) -> dict[str, str]:
    """Returns an environment whose home is this empty folder, so that neither old settings nor old signatures count."""
    home.mkdir(exist_ok=True)
    ours = ("HOME", "JUPYTER", "IPYTHONDIR", "XDG_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | {"HOME": str(home)}


@contextlib.contextmanager
def start(folder: Path, *options: str, python: Path = Path(sys.executable)) -> Iterator[Lab]:
    """A lab on this folder, killed at the end."""
    command = [str(python), "-P", "-m", "kcontrol", "lab", "--no-browser", "--dir", str(folder), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=at_home(folder.parent / "home")) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("The workbook is open at http://127.0.0.1:"), line
            yield Lab(process, line.split()[-1], folder, [process.stdout.readline().rstrip() for _ in range(3)])
        finally:
            process.kill()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One lab for the tests that do not end it."""
    with start(tmp_path_factory.mktemp("mein Ordner") / "übung") as running:
        yield running


def test_the_address_answers(lab: Lab) -> None:
    """What is printed is the first chapter's address, and it answers at once without a further login."""
    assert re.search(r"/lab/tree/00-[^?]+\.ipynb\?token=[0-9a-f]{48}$", lab.address)
    with OPENER.open(lab.address, timeout=60) as answer:
        assert answer.status == 200
        assert b"jupyter-config-data" in answer.read()


def test_it_says_what_to_open_where_the_copy_is_and_how_to_stop(lab: Lab) -> None:
    """Three lines follow the address; the folder is named as it is, with its blank and its umlaut."""
    begin, copy, stop = lab.welcome
    assert begin.startswith("Begin with 00-")
    assert copy.endswith(f" are in {lab.folder}")
    assert stop.startswith("Ctrl-C here stops the workbook")


def test_a_chosen_theme_stays_in_the_learners_folder(lab: Lab) -> None:
    """JupyterLab's settings are written below the learner's folder, and nothing of them below the user's home."""
    setting = "/lab/api/settings/@jupyterlab/apputils-extension:themes"
    url = urllib.parse.urlsplit(lab.address)
    request = urllib.request.Request(
        f"http://{url.netloc}{setting}", method="PUT", data=json.dumps({"raw": '{"theme": "JupyterLab Dark"}'}).encode(),
        headers={"Authorization": f"token {urllib.parse.parse_qs(url.query)['token'][0]}"},
    )  # fmt: skip
    with OPENER.open(request, timeout=60) as answer:
        assert answer.status == 204
    assert lab.ask(setting)["raw"] == '{"theme": "JupyterLab Dark"}'
    assert list((lab.folder.parent / "home").rglob("*.jupyterlab-settings")) == []
    assert [path.name for path in (lab.folder / ".kcontrol" / "settings").rglob("*.jupyterlab-settings")] == [
        "themes.jupyterlab-settings"
    ]


def test_a_request_without_the_token_is_forbidden(lab: Lab) -> None:
    """The server answers 403 to a request without the token."""
    with pytest.raises(urllib.error.HTTPError, match="403"):
        OPENER.open(f"http://{urllib.parse.urlsplit(lab.address).netloc}/api/contents", timeout=60)


def test_it_listens_on_this_machine_alone(lab: Lab) -> None:
    """Every port of the server is on the loopback interface."""
    listening = [c.laddr.ip for c in psutil.Process(lab.process.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert set(listening) == {"127.0.0.1"}


def test_the_notebooks_are_trusted_copies(lab: Lab) -> None:
    """The server shows the learner's copies, equal to what is shipped and trusted."""
    names = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    files = shipped(ROOT / "notebooks")
    assert {item["name"] for item in lab.ask("/api/contents")["content"]} >= names
    for name in names:
        assert (lab.folder / name).read_bytes() == files[name]
        cells = lab.ask(f"/api/contents/{urllib.parse.quote(name)}")["content"]["cells"]
        assert {cell["metadata"].get("trusted") for cell in cells if cell["cell_type"] == "code"} == {True}


@pytest.mark.slow
def test_no_news_and_no_update_checks(lab: Lab) -> None:
    """JupyterLab's settings have news and update checks off, and its server offers neither."""
    settings = lab.ask("/lab/api/settings/@jupyterlab/apputils-extension:notification")
    defaults = {name: item["default"] for name, item in settings["schema"]["properties"].items()}
    assert (defaults["fetchNews"], defaults["checkForUpdates"]) == ("false", False)
    with OPENER.open(lab.address, timeout=60) as answer:
        config = json.loads(re.search(rb'id="jupyter-config-data"[^>]*>\s*(\{.*?\})\s*</script>', answer.read(), re.DOTALL)[1])  # type: ignore[index]
    assert config["news"] == {"disabled": True}


@pytest.mark.slow
def test_two_starts_at_once_take_two_ports(tmp_path: Path) -> None:
    """Two labs that start at the same moment both answer, each on a port of its own."""
    commands = [[sys.executable, "-P", "-m", "kcontrol", "lab", "--no-browser", "--dir", str(tmp_path / name)] for name in "ab"]
    with contextlib.ExitStack() as stack:
        env = at_home(tmp_path / "home")
        processes = [
            stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)) for command in commands
        ]
        for process in processes:
            stack.callback(process.kill)
        addresses = [process.stdout.readline().split()[-1] for process in processes if process.stdout]
        assert len({urllib.parse.urlsplit(address).port for address in addresses}) == 2
        for address in addresses:
            assert OPENER.open(address, timeout=60).status == 200


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_in_order(number: int, tmp_path: Path) -> None:
    """After SIGTERM or Ctrl-C the server ends by itself, with status 0, and nothing is left."""
    with start(tmp_path / "work") as lab:
        pids, runtime = lab.run_in_kernel(LITTLE), lab.runtime()
        lab.process.send_signal(number)
        assert lab.process.wait(30) == 0
        assert still_running(pids) == []
        assert wait_until_absent(runtime)


@pytest.mark.slow
@pytest.mark.zookeeper
@pytest.mark.spark
def test_nothing_outlives_a_killed_server(tmp_path: Path) -> None:
    """Within ten seconds of SIGKILL to the server its kernel, ZooKeeper, Spark, and even what detached itself are gone."""
    with start(tmp_path / "work") as lab:
        pids, runtime = lab.run_in_kernel(EVERYTHING), lab.runtime()
        everything = set(pids) | set(lab.started())
        try:
            assert [pid for pid in pids if not is_running(pid)] == []
            assert len(pids) == 4
            began = time.monotonic()
            lab.process.kill()
            assert still_running(everything) == []
            print(f"{len(everything)} processes gone after {time.monotonic() - began:.1f} s")
            assert wait_until_absent(runtime)
        finally:
            for pid in everything:
                kill(pid)
