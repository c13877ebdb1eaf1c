"""Starts JupyterLab with the notebooks of a learner (a user of the lab), and ends it with all its processes.

JupyterLab is reachable from this machine alone.
"""

import fcntl
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from nbformat import read
from nbformat.sign import NotebookNotary

from kcontrol.core.errors import UserError
from kcontrol.install import process_cleanup, run_cleanup, workspace
from kcontrol.zookeeper.server.embedded import is_taken

SETTINGS = Path(__file__).parent / "jupyter"
FIRST_PORT = 8888


class LabProblem(UserError):
    """The error for a JupyterLab that cannot be started, because its port is in use."""


def prepare_environment(folder: Path, runtime: Path, mark: str) -> None:
    """Set the environment variables that JupyterLab and its child processes inherit.

    `folder` is the learner's folder, `runtime` a private folder for sockets, and `mark` a random text by which `process_cleanup`
    finds these processes.
    """
    os.environ[process_cleanup.MARK] = mark
    os.environ["JUPYTER_RUNTIME_DIR"] = str(runtime)
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"
    os.environ["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / ".kcontrol" / "workspaces")
    # A choice in the workbook, such as the theme, does not change the settings of the user's other Jupyters.
    os.environ["JUPYTERLAB_SETTINGS_DIR"] = str(folder / ".kcontrol" / "settings")
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [str(SETTINGS), os.environ.get("JUPYTER_CONFIG_PATH")]))
    # Notebooks call `kcontrol` and `dot`, which are in the folder of this Python.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def trust(folder: Path, source: Path) -> None:
    """Those that equal the shipped ones; JupyterLab signs a notebook that the learner runs."""
    notary = NotebookNotary()
    for name, content in workspace.shipped(source).items():
        path = folder / name
        if path.suffix == ".ipynb" and path.read_bytes() == content:
            notary.sign(read(path, as_version=4))


def first_chapter() -> str:
    """Return the name of the notebook that opens first, the first by name; "" if no notebook is shipped."""
    notebooks = (name for name in sorted(workspace.shipped(workspace.NOTEBOOKS)) if name.endswith(".ipynb"))
    return next(notebooks, "")


def first_page() -> str:
    """Return the URL path of the page that opens first: the first chapter or, if no notebook is shipped, JupyterLab's files."""
    return f"/lab/tree/{quote(first_chapter())}"


def welcome(folder: Path, address: str) -> str:
    """Return the text that is printed after the start: the address, the first chapter, the learner's folder and how to stop."""
    return "\n".join([
        f"The workbook is open at {address}",
        f"Begin with {first_chapter()}: run its cells with Shift+Enter.",
        f"Your own copy of the notebooks, your exercises and your runs are in {folder}",
        "Ctrl-C here stops the workbook and everything that it has started; your files stay.",
    ])  # fmt: skip


def options(folder: Path, port: int | None, *, browser: bool) -> list[str]:
    """Return JupyterLab's arguments, with `folder` as the root of its file browser.

    The arguments override the user's configuration. Without `port` JupyterLab takes port 8888 or, if this port is in use,
    another port.
    """
    return [
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port or FIRST_PORT}",
        f"--ServerApp.port_retries={0 if port else 50}",
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.open_browser={browser}",
        # The default user of a container is root; the server listens on the loopback interface only and requires the token.
        f"--ServerApp.allow_root={os.geteuid() == 0}",
        "--ServerApp.answer_yes=True",
        f"--LabApp.default_url={first_page()}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.news_url=None",
        "--LabApp.extension_manager=readonly",
        f"--IdentityProvider.token={secrets.token_hex(24)}",
        "--Application.log_level=ERROR",
    ]


@contextmanager
def one_at_a_time() -> Iterator[Callable[[], None]]:
    """So two servers that start at one time do not take the same port."""
    path = Path(tempfile.gettempdir()) / f"kcontrol-{os.getuid()}.lock"
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lambda: fcntl.flock(lock, fcntl.LOCK_UN)


def private_folder() -> Path:
    """Its path is short: that of a socket in it may have at most 104 characters on macOS."""
    short = Path("/tmp")  # noqa: S108
    return Path(tempfile.mkdtemp(prefix="kc-", dir=short if os.access(short, os.W_OK) else None))


def notices(folder: Path) -> Iterator[str]:
    """Bring the notebooks in `folder` up to date, and delete the oldest runs; yield a sentence about each change.

    Above 200 journals or 50 MB the oldest are deleted, until 100 and 25 MB; journals still being written stay.
    """
    changes = workspace.prepare(folder)
    for name in changes.updated:
        yield f"Brought up to date: {folder / name}"
    for name in changes.kept:
        again = f"`kcontrol reset {Path(name).stem}` copies the new version and keeps yours under another name."
        yield f"Kept your {folder / name}, though there is a newer version: {again}"
    runs = folder / run_cleanup.NAME
    try:
        yield from filter(None, [run_cleanup.clear(runs)])
    except OSError as problem:
        yield f"The oldest runs in {runs} could not be deleted ({problem.strerror})."


def serve(folder: Path, port: int | None = None, *, browser: bool = True) -> None:
    """Copy the notebooks into the learner's folder and run JupyterLab there until it ends; then end its child processes.

    Without `port` JupyterLab takes a free port. With `browser` it opens a browser.

    Raises LabProblem: the port is in use.
        WorkspaceProblem: the folder cannot be used.
    """
    if port is not None and is_taken(port):
        raise LabProblem(f"Port {port} is in use: choose another one with --port, or none to get a free one.")
    for sentence in notices(folder):
        print(sentence, file=sys.stderr)
    trust(folder, workspace.NOTEBOOKS)
    mark, runtime = secrets.token_hex(16), private_folder()
    guard = process_cleanup.start(mark, runtime)
    prepare_environment(folder, runtime, mark)
    try:
        with one_at_a_time() as release_lock:
            # Imported late, because JupyterLab reads the environment on import.
            from jupyterlab.labapp import LabApp

            app = LabApp.initialize_server(argv=options(folder, port, browser=browser))

            def announce() -> None:
                release_lock()
                address = app.connection_url.rstrip("/") + first_page()
                # The address is printed when the server accepts requests.
                print(welcome(folder, f"{address}?token={app.identity_provider.token}"), flush=True)

            app.io_loop.add_callback(announce)  # Called after JupyterLab's own callback, which binds the port.
            app.start()
    finally:
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait()
