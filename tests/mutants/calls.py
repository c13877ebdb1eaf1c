"""Which test calls which functions: measured once, kept beside the tests' results, measured again where a file has changed."""

from __future__ import annotations

import functools
import gc
import hashlib
import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import pytest

from tests.mutants.sessions import Failures, run_one

Function = tuple[str, str]  # the file, and the name of the outermost function
AT_IMPORT = ""  # stands for the test that is no test: what runs while the mutated modules are imported


class Called(NamedTuple):
    """What a test calls, and the processor time that it takes."""

    functions: frozenset[Function]
    seconds: float


class Tracer:
    """Notes each function of a folder that is called."""

    def __init__(self, folder: Path) -> None:
        self.root, self.prefix = folder.parent, str(folder)
        self.codes = set[CodeType]()

    def start(self) -> None:
        self.codes.clear()
        codes = self.codes

        def called(frame: FrameType, _event: str, _argument: Any) -> None:
            codes.add(frame.f_code)

        sys.settrace(called)

    def stop(self) -> frozenset[Function]:
        sys.settrace(None)
        return frozenset(self._function(code) for code in self.codes if code.co_filename.startswith(self.prefix))

    def _function(self, code: CodeType) -> Function:
        return str(Path(code.co_filename).relative_to(self.root)), code.co_qualname.split(".<locals>")[0]


def measure(items: Iterable[pytest.Item], tracer: Tracer, failures: Failures) -> Iterator[tuple[str, Called]]:
    """Yield what each test calls, alone and with fixtures of its own; ends before the first test that fails."""
    to_clear = caches(Path(tracer.prefix).name)
    for item in items:
        for cache in to_clear:
            cache.cache_clear()
        began = time.process_time()
        tracer.start()
        run_one(item, None)
        functions = tracer.stop()
        if failures.first:
            return
        yield item.nodeid, Called(functions, time.process_time() - began)


def caches(package: str) -> list[functools._lru_cache_wrapper[Any]]:
    """Return the caches of the package and of the tests, which are emptied so that a test calls what it depends on."""
    rooms = {package, "tests"}
    found = [one for one in gc.get_objects() if isinstance(one, functools._lru_cache_wrapper)]
    return [one for one in found if one.__module__.split(".")[0] in rooms]


# ---------------------------------------------------------------- the file


def digest(root: Path, paths: Iterable[Path]) -> str:
    """Return what identifies the text of some files."""
    said = hashlib.sha256()
    for path in sorted(paths):
        said.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes() + b"\0")
    return said.hexdigest()


def load(path: Path, digests: dict[str, str]) -> dict[str, Called]:
    """Return what was measured, without the tests of which a file that they call, or their own, has changed since."""
    if not path.exists():
        return {}
    kept = json.loads(path.read_text())
    names = [(file, name) for file, name in kept["functions"]]
    found = {test: Called(frozenset(names[n] for n in row[1]), row[2]) for test, row in kept["tests"].items()}
    return {test: one for test, one in found.items() if kept["tests"][test][0] == _depends_on(test, one, digests)}


def save(path: Path, digests: dict[str, str], called: dict[str, Called]) -> None:
    """Write what was measured, each function's name once."""
    names = sorted({function for one in called.values() for function in one.functions})
    places = {name: place for place, name in enumerate(names)}
    rows = {
        test: (_depends_on(test, one, digests), sorted(places[f] for f in one.functions), round(one.seconds, 3))
        for test, one in called.items()
    }
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps({"functions": names, "tests": rows}))


def _depends_on(test: str, one: Called, digests: dict[str, str]) -> str:
    """Return what identifies the text of everything that a test calls, and of the test."""
    files = sorted({test.split("::")[0], *(file for file, _ in one.functions)})
    return hashlib.sha256(repr([(file, digests.get(file)) for file in files]).encode()).hexdigest()[:16]
