"""Fetch the official jars of Kafka's releases with Maven, once for each user of the machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kcontrol.core.errors import UserError

POM = Path(__file__).with_name("kafka_jars.xml")
# The Scala that a release's jars are built with.
SCALA = {
    "0.8.0": "2.9.2", "0.8.1.1": "2.10", "0.8.2.2": "2.11", "0.9.0.1": "2.11", "0.10.2.2": "2.11", "0.11.0.3": "2.11",
    "1.0.2": "2.11", "1.1.1": "2.11", "2.4.1": "2.12", "2.8.2": "2.13", "3.9.1": "2.13",
}  # fmt: skip
FETCH_TIMEOUT_S = 540
NOT_THERE = "Could not find artifact"


class JarsMissing(UserError):
    """The jars, or what runs them, cannot be had on this machine; the text says why and what to do."""


def jdk_tool(name: str) -> str:
    """Return `java` or `javac` of the JDK whose compiler is on PATH. Raises JarsMissing where there is none."""
    compiler = shutil.which("javac")
    if compiler is None:
        raise JarsMissing("No Java compiler (javac) is on PATH: install a JDK 17 or newer.")
    return str(Path(compiler).resolve().with_name(name))


def cache() -> Path:
    """Return the folder that keeps the jars, below the user's cache folder (XDG_CACHE_HOME, by default ~/.cache)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kcontrol" / "kafka-jars"


def jars(release: str) -> Path:
    """The folder of all jars of brokers of an official release ("2.8.2"), fetched if missing; JarsMissing if that fails."""
    if release not in SCALA:
        raise JarsMissing(f"There are no jars of Kafka {release} here: choose one of {', '.join(SCALA)}.")
    return fetched(release, POM, {"includeScope": "runtime", "kafka": release, "scala": SCALA[release]})


def fetched(name: str, pom: Path, settings: Mapping[str, str]) -> Path:
    """The cached folder `name` with the jars of a pom; processes that ask at once fetch them once. Raises JarsMissing."""
    folder = cache() / name
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            # A folder with the final name is complete, also after an interrupted fetch.
            with tempfile.TemporaryDirectory(prefix=f"{name}.", dir=folder.parent) as half:
                run_maven(name, pom, settings, Path(half) / "jars")
                (Path(half) / "jars").rename(folder)
    return folder


def run_maven(name: str, pom: Path, settings: Mapping[str, str], folder: Path) -> None:
    """Copy the jars of a pom into a folder; JarsMissing if Maven is missing or ended without them."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JarsMissing(f"Maven, which fetches the jars of {name}, is not on PATH: install Maven and a Java for it.")
    goal = [f"-D{key}={value}" for key, value in {**settings, "outputDirectory": str(folder)}.items()]
    command = [maven, "--batch-mode", "--quiet", "--file", str(pom), "dependency:copy-dependencies", *goal]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False, cwd=folder.parent)
    except subprocess.TimeoutExpired as cause:
        text = f"Maven's repository answers too slowly: it had no jars of {name} after {FETCH_TIMEOUT_S} s; try again later."
        raise JarsMissing(text) from cause
    if done.returncode or not any(folder.glob("*.jar")):
        raise JarsMissing(reason(name, done.stdout + done.stderr))


def reason(name: str, output: str) -> str:
    """Return one sentence on why Maven has not fetched the jars, from what it printed."""
    said = next((line for line in output.splitlines() if "ERROR" in line), "it printed no error")
    said = said.partition("[ERROR]")[2].strip().rstrip(".") or said
    if NOT_THERE in output:
        return f"Maven's repository answers, but has no such jars of {name} ({said}): point Maven's settings at a full mirror."
    return f"Maven's repository does not answer, so there are no jars of {name} ({said}): check the network or Maven's settings."
