"""`./run` needs Python and nothing else, makes the environment once, and sees when it is not whole."""

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest

from kcontrol.install import bootstrap
from tests.parts import ROOT

TOOLS = ("sh", "dirname", "readlink")


def machine(folder: Path, *pythons: Path) -> str:
    """Makes a PATH that has what `./run` may use and these Pythons, under the name python3."""
    folder.mkdir()
    for tool in TOOLS:
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    for python in pythons:
        (folder / "python3").symlink_to(python)
    return str(folder)


def run(*arguments: str | Path, path: str, script: Path = ROOT / "run", cwd: Path = ROOT, env: Mapping[str, str] | None = None):  # type: ignore[no-untyped-def]
    """Runs `./run` with this PATH and no other variables than those given."""
    given = {"PATH": path} | (env or {})
    return subprocess.run([script, *arguments], env=given, cwd=cwd, capture_output=True, text=True, check=False, timeout=600)


def test_without_python(tmp_path: Path) -> None:
    """Without Python, or with one that is too old, the answer is one sentence that names the versions, and status 1."""
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    for path in (machine(tmp_path / "none"), machine(tmp_path / "too-old", old)):
        done = run("lab", path=path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == "kcontrol needs Python 3.11, 3.12 or 3.13, and none is on PATH: install one, then run this again.\n"


def test_another_python_than_the_first_will_do(tmp_path: Path) -> None:
    """If python3 is too old but a python3.12 is there, that one is taken."""
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    path = machine(tmp_path / "bin", old)
    (tmp_path / "bin" / "python3.12").symlink_to(sys.executable)
    assert run("help", path=path).stdout.startswith("usage: ./run")


def test_usage(tmp_path: Path) -> None:
    """Without a command the usage is shown and the status is 2; an unknown one is named; the tests cannot be light."""
    path = machine(tmp_path / "bin", Path(sys.executable))
    assert [run(*arguments, path=path).returncode for arguments in ((), ("--light",), ("--help",))] == [2, 2, 0]
    error = run("tset", path=path).stderr
    assert error == "kcontrol: 'tset' is not a command of ./run: use lab, test, doctor, kcontrol or python.\n"
    assert run("--light", "test", path=path).stderr == "kcontrol: The tests need everything: run ./run test without --light.\n"


def test_it_runs_python_from_any_folder(tmp_path: Path) -> None:
    """`./run python` keeps folder, arguments and process id, also when it is called through a link."""
    path = machine(tmp_path / "bin", Path(sys.executable))
    folder = tmp_path / "ein Ordner"
    folder.mkdir()
    (tmp_path / "link").symlink_to(ROOT / "run")
    code = "import os, sys; print(os.getcwd(), sys.argv[1:], os.getpid(), sys.prefix, sep='\\n')"
    with subprocess.Popen(
        [tmp_path / "link", "python", "-c", code, "a b", "--light", "ü"],
        env={"PATH": path, "PYTHONUTF8": "1"}, cwd=folder, stdout=subprocess.PIPE, text=True, encoding="utf-8",
    ) as process:  # fmt: skip
        out, _ = process.communicate(timeout=600)
    assert out.splitlines() == [str(folder), str(["a b", "--light", "ü"]), str(process.pid), str(ROOT / ".venv")]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder as far as the bootstrap looks, with a whole environment in it."""
    root = tmp_path / "project"
    (root / ".venv" / "bin").mkdir(parents=True)
    for name in ("pyproject.toml", *(path.name for path in bootstrap.LOCKS.values())):
        shutil.copy(ROOT / name, root)
    python = root / ".venv" / "bin" / "python"
    python.symlink_to(sys.executable)
    monkeypatch.setattr(bootstrap, "ROOT", root)
    monkeypatch.setattr(bootstrap, "VENV", root / ".venv")
    monkeypatch.setattr(bootstrap, "PYTHON", python)
    monkeypatch.setattr(bootstrap, "OWN_UV", root / ".uv")
    monkeypatch.setattr(bootstrap, "STAMP", root / ".venv" / "kcontrol.json")
    monkeypatch.setattr(bootstrap, "LOCKS", {level: root / path.name for level, path in bootstrap.LOCKS.items()})
    bootstrap.STAMP.write_text(json.dumps(bootstrap.stamp_for("full")))
    return root


@pytest.mark.parametrize(
    ("made", "serves"), [("light", ["light"]), ("lab", ["light", "lab"]), ("full", ["light", "lab", "full"])]
)
def test_an_environment_serves_its_level_and_those_below(made: str, serves: list[str], project: Path) -> None:
    """A full environment is ready for every level, a lab's not for the tests, a light one for the light level alone."""
    bootstrap.STAMP.write_text(json.dumps(bootstrap.stamp_for(made)))
    assert [level for level in bootstrap.LOCKS if bootstrap.is_ready(level)] == serves


@pytest.fixture
def installed(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The levels for which the environment has been installed, in order; nothing is really installed."""
    levels: list[str] = []
    monkeypatch.setattr(bootstrap, "find_uv", lambda env: Path("uv"))
    monkeypatch.setattr(bootstrap, "run", lambda *command, env, quiet=False: True)
    monkeypatch.setattr(bootstrap, "install", lambda uv, level, env: levels.append(level))
    return levels


@pytest.mark.parametrize(("stamp", "asked", "made"), [
    ({"level": "lab"}, "full", "full"),
    ({"level": "full"}, "lab", "full"),
    ({"level": "full"}, "light", "full"),
    ({"level": "full", "root": None}, "lab", "full"),
    ({"level": "boo"}, "lab", "lab"),
    ({}, "lab", "lab"),
])  # fmt: skip
def test_what_was_added_is_not_lost(
    stamp: dict[str, str | None], asked: str, made: str, project: Path, installed: list[str]
) -> None:
    """An environment that is made anew, after a new lock or after an interruption, is made for the highest level it ever had."""
    found = {"root": str(project), "inputs": "of an older lock"} | stamp
    bootstrap.STAMP.write_text(json.dumps(found if stamp else []))
    bootstrap.make(asked)
    assert installed == [made]
    assert json.loads(bootstrap.STAMP.read_text()) == bootstrap.stamp_for(made)


def test_an_interrupted_installation_is_made_anew_for_its_level(
    project: Path, installed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stamp of a half-made environment is that of no complete one, and keeps the level."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    bootstrap.STAMP.write_text(json.dumps(bootstrap.stamp_for("full") | {"inputs": "of an older lock"}))
    monkeypatch.setattr(bootstrap, "install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bootstrap.make("lab")
    assert [level for level in bootstrap.LOCKS if bootstrap.is_ready(level)] == []
    assert bootstrap.read_stamp() == {"level": "full"}


@pytest.mark.parametrize(("command", "level"), [("lab", "lab"), ("test", "full"), ("python", "any"), ("doctor", "any")])
def test_only_the_tests_need_the_tools_of_the_tests(command: str, level: str) -> None:
    """The workbook is opened without them."""
    assert bootstrap.split([command])[1] == level


ERROR = "import sys; print('Resolved', flush=True); sys.stderr.write('error: Failed to fetch'); sys.exit(2)"


def test_what_goes_wrong_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """All output of a command goes to stderr; if the command is quiet, it goes nowhere."""
    assert not bootstrap.run(sys.executable, "-c", ERROR, env=dict(os.environ))
    assert capfd.readouterr() == ("", "Resolved\nerror: Failed to fetch")
    assert not bootstrap.run(sys.executable, "-c", ERROR, env=dict(os.environ), quiet=True)
    assert capfd.readouterr() == ("", "")


def test_packages_come_from_the_cache_alone_if_that_is_complete(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The network is used only after the cache was not enough, and without a terminal no progress is shown."""
    asked: list[tuple[object, ...]] = []

    def run(*command: object, **_: object) -> bool:
        asked.append(command)
        return "--offline" not in command or "--editable" in command

    monkeypatch.setattr(bootstrap, "run", run)
    bootstrap.install(Path("uv"), "light", {})
    assert [("--offline" in command, "--quiet" in command, "--require-hashes" in command) for command in asked] == [
        (True, False, True), (False, True, True), (True, False, False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "is_compiled"), [pytest.param({}, True, marks=pytest.mark.slow), ({"PYTHONDONTWRITEBYTECODE": "1"}, False)]
)
def test_the_first_imports_are_compiled_unless_that_is_forbidden(
    setting: dict[str, str], is_compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of an installation writes the bytecode of kcontrol's lab and of pandas; PYTHONDONTWRITEBYTECODE forbids it."""
    monkeypatch.setattr(bootstrap, "PYTHON", Path(sys.executable))
    env = {"PATH": os.environ["PATH"], "PYTHONPYCACHEPREFIX": str(tmp_path / "written"), "PYTHONPATH": str(ROOT)}
    bootstrap.compile_first_imports(env | setting)
    written = {path.name.partition(".")[0] for path in (tmp_path / "written").rglob("*.pyc")}
    assert (written >= {"lab", "viewer", "labapp", "kernelapp", "frame"}) is is_compiled and bool(written) is is_compiled


@pytest.mark.parametrize(("fails", "sentence"), [
    ("venv", "cannot make environments: install its venv module"),
    ("pip", "pip could not install uv: see its message above"),
    ("uv venv", "The environment could not be made in "),
    ("uv pip", "The packages could not be installed: see the message above"),
])  # fmt: skip
def test_what_cannot_be_made_is_one_sentence(
    fails: str, sentence: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where Python's venv, pip or uv fails, the status is 1, and the last line says which of them, and what to do."""
    bootstrap.STAMP.write_text("{}")
    bootstrap.OWN_UV.mkdir()

    def run(*command: object, **_: object) -> bool:
        return fails != (command[2] if command[1] == "-m" else f"uv {command[1]}")

    monkeypatch.setattr(bootstrap, "run", run)
    assert bootstrap.main(["lab"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and sentence in said[1] and said[1].endswith(".")


@pytest.mark.parametrize("harm", ["no stamp", "half a stamp", "no python", "dead python", "moved", "new lock", "new project"])
def test_an_environment_that_is_not_whole_is_seen(
    harm: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An interrupted installation, a missing Python, a moved folder and a changed lock or project are all seen."""
    python = project / ".venv" / "bin" / "python"
    if harm == "no stamp":
        bootstrap.STAMP.unlink()
    elif harm == "half a stamp":
        bootstrap.STAMP.write_text(bootstrap.STAMP.read_text()[:20])
    elif harm in {"no python", "dead python"}:
        python.unlink()
        if harm == "dead python":
            python.symlink_to(tmp_path / "uninstalled")
    elif harm == "moved":
        monkeypatch.setattr(bootstrap, "ROOT", tmp_path / "elsewhere")
        shutil.copytree(project, tmp_path / "elsewhere", symlinks=True)
    else:
        with (project / ("requirements.lock" if harm == "new lock" else "pyproject.toml")).open("a") as file:
            file.write("\n")
    assert not bootstrap.is_ready("full")
    assert not bootstrap.is_ready("light")


@pytest.mark.slow
def test_pips_settings_reach_uv(project: Path) -> None:
    """What is set for pip is set for uv under uv's names; what is set for uv already wins."""
    venv.create(project / ".uv", with_pip=True)
    env = {
        "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "https://mirror.example/simple",
        "PIP_EXTRA_INDEX_URL": "https://one.example https://two.example", "PIP_CERT": "/certificates.pem",
        "PIP_FIND_LINKS": "/one /two", "UV_DEFAULT_INDEX": "https://chosen.example/simple",
    }  # fmt: skip
    found = bootstrap.pip_settings(env)
    found.pop("UV_SYSTEM_CERTS", None)
    assert found == {
        "UV_INDEX": "https://one.example https://two.example",
        "SSL_CERT_FILE": "/certificates.pem",
        "UV_FIND_LINKS": "/one,/two",
    }


def test_the_pinned_uv_has_its_hashes(project: Path) -> None:
    """The requirement for uv is the lock's own, with every hash, so that pip checks it."""
    lines = bootstrap.pinned_uv().splitlines()
    assert lines[0].startswith("uv==")
    assert len(lines) > 5
    assert all(line.strip().startswith("--hash=sha256:") for line in lines[1:])
    assert not lines[-1].endswith("\\")


def cache_folder() -> str:
    """Returns where uv keeps what it has fetched, so that these tests fetch nothing again."""
    return subprocess.run([sys.executable, "-m", "uv", "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_a_fresh_copy_in_an_awkward_place(tmp_path: Path) -> None:
    """In a folder with a blank and an umlaut, with an empty home: light first, then offline, harmed, moved and made full."""
    root = tmp_path / "Kurs März" / "kcontrol"
    names = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, names.split("\0")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy(ROOT / name, root / name)
    path = machine(tmp_path / "bin", Path(sys.base_prefix) / "bin" / "python3")
    home = tmp_path / "home"
    home.mkdir()
    env = {"HOME": str(home), "UV_CACHE_DIR": cache_folder(), "PYTHONUTF8": "1"}
    env |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_CERT"))}
    offline = env | {"UV_OFFLINE": "1", "PIP_NO_INDEX": "1", "ALL_PROXY": "http://127.0.0.1:9"}
    probe = "import importlib.util as u, kcontrol; print(kcontrol.__file__, u.find_spec('pyspark') is not None)"

    def answer(*arguments: str, env: Mapping[str, str] = env) -> tuple[str, str]:
        done = run(*arguments, path=path, script=root / "run", cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip(), done.stderr

    package = "kcontrol/__init__.py"
    assert answer("--light", "python", "-c", probe)[0] == f"{root / package} False"
    assert answer("python", "-c", probe, env=offline) == (f"{root / package} False", "")
    (root / ".venv" / "kcontrol.json").unlink()
    assert answer("--light", "python", "-c", probe, env=offline)[0] == f"{root / package} False"
    root = root.rename(tmp_path / "moved ü")
    assert answer("python", "-c", probe)[0] == f"{root / package} False"
    answer("test", "--help")
    assert answer("python", "-c", probe, env=offline) == (f"{root / package} True", "")
    tools = "import importlib.util as u; print([u.find_spec(name) is not None for name in ('mypy', 'playwright', 'pyspark')])"
    assert answer("python", "-c", tools) == ("[True, True, True]", "")
