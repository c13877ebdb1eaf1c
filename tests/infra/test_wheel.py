"""The wheel is whole: an environment that has only the wheel and its dependencies has all parts of the workbook."""

import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcontrol import Lab, __version__, exercises
from kcontrol.install.bootstrap import pip_settings
from kcontrol.install.workspace import shipped
from tests.infra.test_lab import OPENER, at_home, start
from tests.parts import ROOT
from tests.test_tidy import committed

pytestmark = pytest.mark.slow
PLAY = """
from kcontrol import Lab, exercises
import kcontrol
run = Lab.open("2.8.2/isr-order")
lab = Lab(brokers=3)
lab.create_topic("t", [[2, 3], [1, 2]]).run()
exercises.predict("writes-to-t-0", lab)
print(len(exercises.list()), len(exercises.questions()), len(Lab.recordings()), len(run.records) > 50, kcontrol.__file__)
"""


def ran(*command: str | Path, cwd: Path, home: Path) -> str:
    """Run a command of the new environment and return its output; the test fails with its errors."""
    done = subprocess.run(command, cwd=cwd, env=at_home(home), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder `bin` of an environment with the wheel alone, built and installed with the lock's tools."""
    folder = tmp_path_factory.mktemp("wheel")
    env = os.environ | pip_settings(dict(os.environ))
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True, timeout=120)
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.base_prefix, folder / "venv"], check=True, timeout=120)
    into = ["pip", "install", "--quiet", "--python", folder / "venv", "--constraint", ROOT / "requirements.lock"]
    subprocess.run([*uv, *into, next(folder.glob("*.whl"))], env=env, check=True, timeout=600)
    yield folder / "venv" / "bin"
    shutil.rmtree(folder)


def test_exercises_questions_and_recordings_are_in_it(installed: Path, tmp_path: Path) -> None:
    """Every exercise, question and recording of the project is there, a recording opens, and a question is asked."""
    printed = ran(installed / "python", "-c", PLAY, cwd=tmp_path, home=tmp_path / "home").splitlines()[-1].split()
    listed = [len(exercises.list()), len(exercises.questions()), len(Lab.recordings())]
    assert printed[:4] == [*map(str, listed), "True"]
    assert Path(printed[4]).is_relative_to(installed.parent)


def test_it_has_the_files_of_the_repository_alone(installed: Path) -> None:
    """Of notebooks and exercises the wheel has each file that git has, and no journal, cache or checkpoint beside them."""
    with zipfile.ZipFile(next(installed.parents[1].glob("*.whl"))) as wheel:
        found = {name.removeprefix("kcontrol/shipped/") for name in wheel.namelist() if name.startswith("kcontrol/shipped/")}
    names = (path.relative_to(ROOT).as_posix() for path in committed())
    assert found == {name for name in names if name.startswith(("notebooks/", "exercises/"))}


def test_the_command_names_its_version(installed: Path, tmp_path: Path) -> None:
    """`kcontrol --version` prints the version of the project."""
    assert ran(installed / "kcontrol", "--version", cwd=tmp_path, home=tmp_path / "home") == f"kcontrol {__version__}\n"


def test_an_exercise_is_begun_and_solved(installed: Path, tmp_path: Path) -> None:
    """Without a named folder the stub lies in the home's `kcontrol-work`, and its solution passes the check there."""
    home = tmp_path / "home"
    ran(installed / "kcontrol", "exercises", "start", "who-leads-next", cwd=tmp_path, home=home)
    stub = home / "kcontrol-work" / "exercises" / "who_leads_next.py"
    assert stub.read_bytes() == (ROOT / "exercises" / stub.name).read_bytes()
    shutil.copy(ROOT / "exercises" / "solutions" / stub.name, stub)
    assert "Solved" in ran(installed / "kcontrol", "exercises", "check", "who-leads-next", cwd=tmp_path, home=home)


def test_the_workbook_opens_on_a_copy(installed: Path, tmp_path: Path) -> None:
    """`kcontrol lab --no-browser` answers at its address, with all files that `./run lab` copies, and ends by itself."""
    with start(tmp_path / "mine", python=installed / "python") as lab:
        assert OPENER.open(lab.address, timeout=60).status == 200
        files = shipped(ROOT / "notebooks")
        assert {name: (lab.folder / name).read_bytes() for name in files} == files
        lab.process.send_signal(signal.SIGINT)
        assert lab.process.wait(30) == 0
