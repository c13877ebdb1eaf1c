"""Tries mutations: the tests that may notice are run, until one of them does."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.mutants import calls, forks
from tests.mutants.applying import change_functions, change_import
from tests.mutants.drawing import speaking_of, words
from tests.mutants.mutations import Mutation
from tests.mutants.sessions import Failures, collect, first_failure, in_order

FIRST = 40  # quick tests that are run before the others, whichever files they are in
# What tests import from outside, so that each fork that imports the package anew finds it there.
OUTSIDE = ("hypothesis.strategies", "jsonschema", "kazoo.client", "msgspec", "pandas", "psutil", "rich", "typer", "yaml")
SURVIVES = "survives"
Say = forks.Say


class Ground(NamedTuple):
    """What is mutated and what tests it; paths are below `root`, and the package is a folder there."""

    root: Path
    package: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]

    @property
    def map_file(self) -> Path:
        return self.root / "tests" / ".results" / "mutants.json"

    def digests(self) -> dict[str, str]:
        """Return what identifies the text of each module, and of each test file with the modules beside it."""
        found = {}
        for path in (self.root / self.package).rglob("*.py"):
            found[str(path.relative_to(self.root))] = calls.digest(self.root, [path])
        for path in (self.root / "tests").rglob("test_*.py"):
            beside = [p for p in path.parent.glob("*.py") if not p.name.startswith("test_")]
            found[str(path.relative_to(self.root))] = calls.digest(self.root, [path, *beside])
        return found


class Trials:
    """Everything that is known of the tests, and the mutations that are tried with it."""

    def __init__(self, ground: Ground, jobs: int) -> None:
        self.ground, self.jobs = ground, jobs
        self.called: dict[str, calls.Called] = {}
        self.speaking = speaking_of(ground.root, ground.package)
        self.words: dict[str, frozenset[str]] = {}

    # ------------------------------------------------------------ which test calls what

    def learn(self) -> None:
        """Measure the tests of which nothing is known yet. Raises SystemExit where one of them fails."""
        sys.path.insert(0, str(self.ground.root))
        for module in OUTSIDE:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        digests = self.ground.digests()
        known = calls.load(self.ground.map_file, digests)
        parts = [self.ground.map_file.with_suffix(f".{part}.json") for part in range(self.jobs)]
        tasks = [(part, self._measuring(part, place)) for place, part in enumerate(parts)]
        said = [words for _, words in forks.each(tasks, self.jobs, 10_000, 20_000)]
        for part in parts:
            self.called |= calls.load(part, digests)
            part.unlink(missing_ok=True)
        self.called = known | self.called
        calls.save(self.ground.map_file, digests, self.called)
        if problems := [words for words in said if words != "done"]:
            raise SystemExit(problems[0] or "The tests could not be measured.")

    def _measuring(self, part: Path, place: int) -> forks.Work:
        def work(say: Say) -> None:
            digests = self.ground.digests()
            known = calls.load(self.ground.map_file, digests)
            tracer, failures = calls.Tracer(self.ground.root / self.ground.package), Failures()
            tracer.start()
            for file in self.ground.modules:
                importlib.import_module(".".join(Path(file).with_suffix("").parts))
            found = {calls.AT_IMPORT: calls.Called(tracer.stop(), 0.0)}

            def run(session: pytest.Session) -> None:
                new = [item for item in session.items if item.nodeid not in known]
                found.update(calls.measure(new[place :: self.jobs], tracer, failures))
                calls.save(part, digests, found)

            collect(self.ground.root, self.ground.tests, failures, run)
            say(f"{failures.first} fails without any mutation: mend it first." if failures.first else "done")

        return work

    def seconds(self, test: str) -> float:
        return self.called[test].seconds if test in self.called else 1.0

    def _in_turn(self, tests: Iterable[str], names: Sequence[str] = ()) -> list[str]:
        """Tests as they are run: some quick ones that call little, of files with one of the names and of all; then by file."""
        cheap = sorted(tests, key=lambda t: (self.called[t].seconds * len(self.called[t].functions), t))
        near = [t for t in cheap if self._words(t.split("::")[0]).intersection(names)]
        files = {file: place for place, file in reversed([*enumerate(t.split("::")[0] for t in near + cheap)])}
        return list(dict.fromkeys(near[:FIRST] + cheap[:FIRST] + sorted(cheap, key=lambda t: files[t.split("::")[0]])))

    def _words(self, file: str) -> frozenset[str]:
        if file not in self.words:
            self.words[file] = frozenset(re.findall(r"\w+", (self.ground.root / file).read_text()))
        return self.words[file]

    # ------------------------------------------------------------ which tests may notice

    def callers(self, functions: set[calls.Function]) -> list[str]:
        """Return the tests that call one of some functions; first quick ones whose file names the function or its module."""
        tests = [t for t, one in self.called.items() if t and one.functions & functions]
        names = [name for file, function in functions for name in (function.split(".")[-1], Path(file).stem)]
        return self._in_turn(tests, names)

    def by_theme(self, mutation: Mutation) -> list[str]:
        """Return the tests of a mutation outside functions.

        First quick tests in files that name the module and the table, such before others whose parameter is its rule; then the
        tests of functions that use what the mutation is about.
        """
        table, _, rule = mutation.function.partition(".")
        names = {Path(mutation.file).stem, table}
        by_cost = sorted(filter(None, self.called), key=lambda t: (f"[{rule}]" not in t, self.seconds(t), t))
        found = dict.fromkeys([t for t in by_cost if names <= self._words(t.split("::")[0])][:FIRST])
        for word in words(mutation):
            found |= dict.fromkeys(self.callers(self.speaking.get(word, set()))[:FIRST])
        return list(found)

    # ------------------------------------------------------------ trying

    def try_all(self, drawn: Sequence[Mutation], report: Callable[[Mutation, str], None]) -> None:
        """Report each mutation with the test that notices it, or SURVIVES."""
        at_import = self.called[calls.AT_IMPORT].functions
        live = [m for m in drawn if m.is_live and (m.file, m.function) not in at_import]
        self._try_imports([m for m in drawn if m not in live], report)
        if live:
            failures = Failures()
            collect(
                self.ground.root, self.ground.tests, failures, lambda session: self._try_live(live, session, failures, report)
            )

    def _each(self, tasks: Iterable[tuple[Mutation, forks.Work]]) -> Iterator[tuple[Mutation, str]]:
        cpu_seconds = 120 + 3 * sum(one.seconds for one in self.called.values())
        for mutation, said in forks.each(tasks, self.jobs, cpu_seconds, 10 * cpu_seconds):
            if said.startswith(forks.BROKEN):
                raise SystemExit(f"{mutation} could not be tried: {said}")
            yield mutation, said or "its limits"

    def _try_imports(self, drawn: Sequence[Mutation], report: Callable[[Mutation, str], None]) -> None:
        """Try mutations of what is made while modules are imported: the tests of its theme, then every other test."""
        left, everything = [], self._in_turn(filter(None, self.called))
        for mutation, said in self._each((m, self._importing(m, self.by_theme(m))) for m in drawn):
            if said == SURVIVES:
                left.append(mutation)
            else:
                report(mutation, said)
        for mutation, said in self._each((m, self._importing(m, everything, self.by_theme(m))) for m in left):
            report(mutation, said)

    def _importing(self, mutation: Mutation, names: Sequence[str], tried: Sequence[str] = ()) -> forks.Work:
        done = set(tried)
        wanted = [name for name in names if name not in done]

        def work(say: Say) -> None:
            said: list[str] = []
            change_import(self.ground.root, mutation)
            failures, files = Failures(), sorted({name.split("::")[0] for name in wanted})

            def run(session: pytest.Session) -> None:
                said.append(failures.first or first_failure(in_order(session.items, wanted), self.seconds, failures, say))

            if wanted:
                collect(self.ground.root, files, failures, run)
            say((said[0] or SURVIVES) if said else "the import of the module" if wanted else SURVIVES)

        return work

    def _try_live(
        self, drawn: Sequence[Mutation], session: pytest.Session, failures: Failures, report: Callable[[Mutation, str], None]
    ) -> None:
        """Try mutations of functions that have been imported: every test that calls the function."""

        def trying(mutation: Mutation) -> forks.Work:
            def work(say: Say) -> None:
                change_functions(self.ground.root, mutation)
                for cache in calls.caches(self.ground.package):
                    cache.cache_clear()
                items = in_order(session.items, self.callers({(mutation.file, mutation.function)}))
                say(first_failure(items, self.seconds, failures, say) or SURVIVES)

            return work

        for mutation, said in self._each((m, trying(m)) for m in drawn):
            report(mutation, said)
