"""The parts of a machine that some tests need, and whether they are there."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

from kcontrol.core.errors import UserError
from kcontrol.install.doctor import find_chromium
from kcontrol.zookeeper.server.embedded import class_path
from kcontrol.zookeeper.server.java import find_java
from tests.kafka_jars import JarsMissing, jars, jdk_tool

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def no_zookeeper() -> str | None:
    """Why there is no real ZooKeeper; None if there is one."""
    try:
        find_java()
        class_path()
    except UserError as problem:
        return str(problem)
    return None


def no_spark() -> str | None:
    """Why there is no Spark; None if there is."""
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pyarrow") is None:
        return "Spark is not installed: run ./run test, which installs it."
    return no_zookeeper()


def no_chromium() -> str | None:
    """Why there is no browser; None if there is one."""
    return None if find_chromium() else "No Chromium was found: install one, or point KCONTROL_CHROMIUM at one."


def no_kafka() -> str | None:
    """Return why the official jars of Kafka, or the JDK that runs them, cannot be had; None if they can."""
    try:
        jdk_tool("javac")
        jars("2.8.2")
    except JarsMissing as problem:
        return str(problem)
    return None


def no_shared() -> str | None:
    """Why the recordings and cases are missing; None if they are there."""
    return None if SHARED.is_dir() else "The folder shared is not beside the project's folder."


PARTS: dict[str, Callable[[], str | None]] = {
    "zookeeper": no_zookeeper, "spark": no_spark, "chromium": no_chromium, "kafka": no_kafka, "shared": no_shared,
}  # fmt: skip


def parse_required(text: str) -> frozenset[str]:
    """The parts named in a comma-separated list; ValueError with those there are for another name."""
    names = frozenset(filter(None, (name.strip() for name in text.split(","))))
    if unknown := sorted(names - PARTS.keys()):
        raise ValueError(f"{', '.join(unknown)} cannot be required: choose from {', '.join(PARTS)}.")
    return names
