"""`python -m tests.group.differential --release 2.8.2 --seed N --count M`, or `--replay FILES`; `--help` says more."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kcontrol.core.errors import UserError
from tests.group.differential import cases
from tests.group.differential.compare import Found, first_difference, kind_of
from tests.group.differential.generate import Generator
from tests.group.differential.kafka import RELEASES, Kafka
from tests.group.differential.ours import play
from tests.group.differential.shrink import shrink

Json = dict[str, Any]


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.group.differential", description=__doc__)
    parser.add_argument("--release", default="2.8.2", choices=RELEASES, help="whose classes are asked (2.8.2)")
    parser.add_argument("--seed", type=int, default=1, help="the first sequence's seed; the others follow it (1)")
    parser.add_argument("--count", type=int, default=100, help="how many sequences (100)")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write each kind of difference there, as a case")
    parser.add_argument("--replay", nargs="+", metavar="FILES", help="play kept cases, or folders of them, without Java")
    return parser.parse_args(words)


class Comparison:
    """One run: its JVM, what it has counted, and the first sequence of each kind of difference."""

    def __init__(self, kafka: Kafka, release: str) -> None:
        self.kafka, self.release, self.votes = kafka, release, kafka.votes()
        self.counts: Counter[str] = Counter()
        self.kinds: dict[str, tuple[int, Json, Found]] = {}
        self.seeds: dict[str, list[int]] = {}

    def compare(self, seed: int) -> None:
        """Make the sequence of a seed, play it on Kafka's classes, and note the first difference."""
        generator = Generator(seed, self.release, self.votes)
        sequence = generator.run()
        kafka = self.kafka.play(sequence)
        self.counts.update(sequences=1, steps=len(kafka), answers=sum(len(seen["ans"]) for seen in kafka))
        self.counts.update(records=sum(len(seen["app"]) for seen in kafka), groups=sum(len(seen["st"]) for seen in kafka))
        found = first_difference(generator.seen, kafka)
        if found is not None:
            kind = f"{sequence['steps'][found.step]['do']}: {kind_of(sequence['steps'], found)}"
            self.kinds.setdefault(kind, (seed, sequence, found))
            self.seeds.setdefault(kind, []).append(seed)

    def differs(self, sequence: Json) -> Found | None:
        """Return where a sequence differs; one that does not make sense without the steps left out does not differ."""
        try:
            return first_difference(play(sequence, self.release, self.votes), self.kafka.play(sequence))
        except (KeyError, IndexError):
            return None

    def explain(self, kind: str, folder: Path | None) -> None:
        """Print the shortest sequence found of a kind, and keep it."""
        seed, sequence, found = self.kinds[kind]
        seeds = self.seeds[kind]
        print(f"== {kind}: {len(seeds)} sequences, seeds {', '.join(map(str, seeds[:6]))}")
        shorter = shrink(sequence, found, self.differs)
        print(f"seed {seed}, config {json.dumps(shorter['config'])}")
        print(*(f"  {number}: {json.dumps(step)}" for number, step in enumerate(shorter["steps"])), sep="\n")
        if (least := self.differs(shorter)) is not None:
            print(*cases.in_words(least), sep="\n")
        if folder is not None:
            path = folder / f"{self.release}-{seed}.json"
            cases.save(path, self.release, self.votes, shorter, self.kafka.play(shorter), kind)
            print(f"kept as {path}")


def compare(release: str, seeds: Sequence[int], folder: Path | None = None) -> int:
    """Compare the sequences of some seeds, say what was found, and return how many differ."""
    with Kafka(release) as kafka:
        run = Comparison(kafka, release)
        for seed in seeds:
            run.compare(seed)
        for kind in sorted(run.kinds, key=lambda kind: -len(run.seeds[kind])):
            run.explain(kind, folder)
        print(f"Kafka {release}:", ", ".join(f"{count} {what}" for what, count in run.counts.items()), "compared")
        failed = sum(map(len, run.seeds.values()))
    print(f"{len(seeds) - failed} passed, {failed} failed")
    return failed


def replay(names: Sequence[str]) -> int:
    """Play kept cases, say which differ and where, and return how many do; a file that is no case does not end the run."""
    files, failed = cases.files_of(names), 0
    for file in files:
        try:
            found = cases.replay(cases.read(file))
        except UserError as problem:
            print(problem)
            failed += 1
            continue
        if found is not None:
            failed += 1
            print(f"{file.stem} differs", *cases.in_words(found), sep="\n")
    print(f"{len(files) - failed} passed, {failed} failed")
    return failed


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 if nothing differs, 1 if something does, 2 if it cannot be found out."""
    asked = arguments(words)
    try:
        if asked.replay:
            return int(bool(replay(asked.replay)))
        return int(bool(compare(asked.release, range(asked.seed, asked.seed + asked.count), asked.keep)))
    except UserError as problem:
        print(problem, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
