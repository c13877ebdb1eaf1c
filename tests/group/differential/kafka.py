"""Kafka's own coordinator classes in a JVM: jars fetched, the Java beside this file compiled once, sequences played in lines."""

from __future__ import annotations

import fcntl
import hashlib
import json
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from types import TracebackType
from typing import Any

from kcontrol.core.errors import UserError
from tests.group.differential.clients import PROTOCOLS
from tests.kafka_jars import cache, fetched, jars, jdk_tool

Json = dict[str, Any]
JAVA = Path(__file__).with_name("java")
MOCKITO = Path(__file__).with_name("mockito.xml")
# The folder with a release's classes of ours, its jar with the coordinator, and whether its clock is redirected in the byte code.
RELEASES = {"2.8.2": ("kafka_2_8", "kafka_2.13-2.8.2.jar", False), "0.9.0.1": ("kafka_0_9", "kafka_2.11-0.9.0.1.jar", True)}
JSON_RELEASE = "2.8.2"  # whose jars bring the JSON library
OPENED = ("java.nio", "sun.nio.ch", "jdk.internal.ref")
COMPILE_TIMEOUT_S, ANSWER_TIMEOUT_S = 300, 120


def class_path(release: str) -> list[str]:
    """All that a release's Java is compiled and run with, without its own classes; raises JarsMissing."""
    mockito = fetched("mockito-5.11.0", MOCKITO, {})
    library = [] if release == JSON_RELEASE else sorted(map(str, jars(JSON_RELEASE).glob("jackson-[acd]*-*.jar")))
    return [f"{jars(release)}/*", f"{mockito}/*", *library]


def compiled(release: str) -> Path:
    """Return the folder of compiled and patched classes of a release, made anew when the Java beside this file has changed."""
    folder, _, _ = RELEASES[release]
    sources = sorted([*JAVA.glob("*.java"), *(JAVA / folder).rglob("*.java")])
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    target = cache() / f"differential-{release}-{digest}"
    path = class_path(release)
    with (cache() / f"differential-{release}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            with tempfile.TemporaryDirectory(prefix="differential.", dir=cache()) as half:
                classes = Path(half) / "classes"
                classes.mkdir()
                _compile(release, classes, path, sources)
                classes.rename(target)
    return target


def _compile(release: str, classes: Path, path: Sequence[str], sources: Sequence[Path]) -> None:
    _, jar, has_clock = RELEASES[release]
    patch = [source for source in sources if source.name in ("Patch.java", "VirtualClock.java")]
    javac = [jdk_tool("javac"), "-nowarn", "-d", str(classes), "-cp"]
    _run([*javac, _joined(path), *map(str, patch)])
    arguments = [str(jars(release) / jar), str(classes), *(["clock"] if has_clock else [])]
    _run([jdk_tool("java"), "-cp", _joined([str(classes), *path]), "Patch", *arguments])
    _run([*javac, _joined([str(classes), *path]), *map(str, sources)])


def _joined(path: Sequence[str]) -> str:
    return ":".join(path)


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, check=False)
    if done.returncode:
        raise UserError(
            f"The Java of the comparison does not compile ({done.stderr.strip()[:500]}): a JDK 17 or newer is needed."
        )


class Kafka:
    """One JVM that plays sequences on the classes of a release; a context manager, so that it ends."""

    def __init__(self, release: str) -> None:
        if release not in RELEASES:
            raise UserError(f"The coordinator of Kafka {release} is not compared: choose one of {', '.join(RELEASES)}.")
        classes = compiled(release)
        self.folder = tempfile.TemporaryDirectory(prefix="kcontrol-differential-")
        quiet = Path(self.folder.name) / "log4j.properties"
        quiet.write_text("log4j.rootLogger=OFF\n")
        opened = [word for package in OPENED for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")]
        options = ["-Xmx1g", "-XX:+UseSerialGC", "-Dnet.bytebuddy.experimental=true", f"-Dlog4j.configuration={quiet.as_uri()}"]
        path = _joined([str(classes), *class_path(release)])
        self.errors = (Path(self.folder.name) / "errors").open("w+")
        self.process = subprocess.Popen(
            [jdk_tool("java"), *options, *opened, "-cp", path, "Coordinator"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, encoding="utf-8", bufsize=1,
        )  # fmt: skip

    def __enter__(self) -> Kafka:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.process.communicate()
        self.errors.close()
        self.folder.cleanup()

    def ask(self, question: Json) -> Any:
        """Return the JVM's answer; one that does not come in time ends the JVM. Raises UserError where there is no answer."""
        assert self.process.stdin and self.process.stdout
        watch = threading.Timer(ANSWER_TIMEOUT_S, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watch.cancel()
        if not line:
            self.errors.seek(0)
            said = self.errors.read().strip()[-500:] or f"it gave no answer in {ANSWER_TIMEOUT_S} s"
            raise UserError(f"The JVM with Kafka's classes has ended ({said}): run the seed again.")
        return json.loads(line)

    def play(self, sequence: Json) -> list[Json]:
        """Return what was seen after each step of a sequence."""
        seen: list[Json] = self.ask({"config": sequence["config"], "steps": sequence["steps"]})
        return seen

    def votes(self) -> dict[str, int]:
        """Return each protocol's place in the order in which ties of the vote are decided, found by trying each pair."""
        pairs = list(permutations(PROTOCOLS, 2))
        won = Counter(self.ask({"votes": [[[[one, ""], [other, ""]], [[other, ""], [one, ""]]] for one, other in pairs]}))
        return {name: place for place, name in enumerate(sorted(PROTOCOLS, key=lambda name: -won[name]))}
