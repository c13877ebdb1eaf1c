"""The locks are complete, hashed, universal and free of addresses."""

import re
import tomllib
from pathlib import Path

import pytest

from kcontrol.install.jupyter_server import SETTINGS
from tests.parts import ROOT

LOCKS = ["requirements.lock", "requirements-lab.lock", "requirements-light.lock", "binder/requirements.txt"]
PIN = re.compile(r"^([a-z0-9][a-z0-9.-]*)==(\S+)(?: ; (.+?))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def pins(name: str) -> dict[str, set[str]]:
    """Returns the versions of each package in a lock; more than one where they differ by Python."""
    found: dict[str, set[str]] = {}
    for line in (ROOT / name).read_text().splitlines():
        if match := PIN.match(line):
            found.setdefault(match[1], set()).add(match[2])
    return found


def declared() -> dict[str, list[str]]:
    """Returns the normalised names of the direct dependencies by extra; the core's under an empty name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [re.match(r"[A-Za-z0-9.-]+", item)[0].lower() for item in items] for extra, items in groups.items()}  # type: ignore[index]


@pytest.mark.parametrize("name", LOCKS)
def test_every_line_is_a_pin_or_a_hash(name: str) -> None:
    """A lock holds pinned packages and their hashes and nothing else: no address, no path, no option."""
    lines = (ROOT / name).read_text().splitlines()
    assert [line for line in lines if not PIN.match(line) and not HASH.match(line)] == []
    assert pins(name)


@pytest.mark.parametrize("name", LOCKS)
def test_every_pin_is_hashed(name: str) -> None:
    """Each package in a lock is followed by at least one hash."""
    lines = (ROOT / name).read_text().splitlines()
    assert [
        line for line, following in zip(lines, [*lines[1:], ""], strict=True) if PIN.match(line) and not HASH.match(following)
    ] == []


def test_the_lock_holds_every_direct_dependency() -> None:
    """Every package that pyproject.toml names is in requirements.lock, whichever extra names it."""
    names = {name for group in declared().values() for name in group}
    assert names - pins("requirements.lock").keys() == set()


def test_the_smaller_lists_have_the_pins_of_the_lock() -> None:
    """The light lock and Binder's list install the same versions as the lock does."""
    everything = pins("requirements.lock")
    others = {name: pins(name) for name in LOCKS[1:]}
    assert all(others.values())
    assert [
        f"{name}: {package} {version}"
        for name, found in others.items()
        for package, versions in found.items()
        for version in versions
        if version not in everything.get(package, set())
    ] == []


def test_the_light_lock_has_the_core_and_neither_java_nor_spark() -> None:
    """The light lock holds the direct dependencies of the core and none of the extra `spark`."""
    light, wanted = pins("requirements-light.lock").keys(), declared()
    assert set(wanted[""]) - light == set()
    assert set(wanted["spark"]) & light == set()


def test_a_learners_lock_has_spark_and_no_tool_of_a_contributor() -> None:
    """The lock of `./run lab` adds to the light one the extra `spark` and nothing of the extras `test`, `build` and `setup`."""
    lab, wanted = pins("requirements-lab.lock").keys(), declared()
    assert set(wanted[""] + wanted["spark"]) - lab == set()
    assert pins("requirements-light.lock").keys() - lab == set()
    needed_anyway = {"jsonschema", "nbclient", "pyyaml"}  # by JupyterLab's server
    assert set(wanted["test"] + wanted["build"] + wanted["setup"]) & lab <= needed_anyway


def test_binder_pins_python_and_what_readers_need() -> None:
    """Binder gets a Python we support and everything but the tests; its scripts stop at the first error."""
    assert re.fullmatch(r"python-3\.1[123]\n", (ROOT / "binder" / "runtime.txt").read_text())
    wanted, found = declared(), pins("binder/requirements.txt").keys()
    assert set(wanted[""] + wanted["spark"] + wanted["build"]) - found == set()
    for script in ("postBuild", "start"):
        path: Path = ROOT / "binder" / script
        assert "set -euo pipefail\n" in path.read_text()
        assert path.stat().st_mode & 0o111
    assert "pip install" in (ROOT / "binder" / "postBuild").read_text()


def test_binder_uses_the_settings_of_the_lab() -> None:
    """The folder of settings that Binder's start names is the one that `kcontrol lab` uses."""
    named = re.search(r'JUPYTER_CONFIG_PATH="\$\{REPO_DIR:-\$PWD\}/([^$]+)\$', (ROOT / "binder" / "start").read_text())
    assert named is not None and ROOT / named[1] == SETTINGS


def test_every_dependency_is_explained() -> None:
    """docs/dependencies.md has one row for each direct dependency and none for anything else."""
    rows = re.findall(r"^\| ([a-z0-9-]+) \|", (ROOT / "docs" / "dependencies.md").read_text(), flags=re.MULTILINE)
    assert sorted(set(rows) - {"package"}) == sorted({name for group in declared().values() for name in group})
    assert len(rows) - rows.count("package") == len(set(rows) - {"package"})
