"""A journal keeps unread batches of records as columns; a reader gets equal records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kcontrol.journal.journal import Journal, Record, RecordId, RecordParts


def spell(text: str, number: int) -> RecordParts:
    """A row as a record; it is caused by the first record of all."""
    return RecordParts(text, RecordId(1, 1, 1), {"number": number})


class Scribe:
    """Writes the same into a journal and, record by record, into a list."""

    def __init__(self) -> None:
        self.journal, self.expected, self.counts = Journal(), list[Record](), dict[tuple[int, int], int]()

    def one(self, kind: str, node: int = 1) -> None:
        """A plain record."""
        id = self.journal.add(node, 1, kind, None, len(self.expected), {"plain": kind})
        self._expect(node, kind, None, len(self.expected), {"plain": kind})
        assert id == self.expected[-1].id

    def batch(self, words: Sequence[str], node: int = 1, spell: Callable[..., RecordParts] = spell) -> None:
        """A record for each word."""
        at_ms = len(self.expected)
        self.journal.add_batch(node, 1, at_ms, spell, (tuple(words), range(len(words))))
        for number, word in enumerate(words):
            self._expect(node, word, RecordId(1, 1, 1), at_ms, {"number": number})

    def ready_made(self, *kinds: str) -> None:
        """Records that have their ids, as those that a search remembers have."""
        records = [Record(RecordId(9, 9, 0), kind, None, 0, {}) for kind in kinds]
        self.journal.extend(records)
        self.expected += records

    def _expect(self, node: int, kind: str, cause: RecordId | None, at_ms: int, fields: dict[str, Any]) -> None:
        seq = self.counts[node, 1] = self.counts.get((node, 1), 0) + 1
        self.expected.append(Record(RecordId(node, 1, seq), kind, cause, at_ms, fields))


CHAPTERS: list[Callable[[Scribe], None]] = [
    lambda s: s.one("start"), lambda s: s.batch("ab"), lambda s: s.batch("cde"), lambda s: s.one("other", node=2),
    lambda s: s.batch(""), lambda s: s.batch("f", node=2), lambda s: s.ready_made("g", "h"), lambda s: s.one("middle"),
    lambda s: s.batch("ijk"),
]  # fmt: skip


def written(looked_at_after: int | None = None) -> Scribe:
    """Write all chapters, and read every record after the given number of them."""
    scribe = Scribe()
    for number, chapter in enumerate(CHAPTERS):
        if number == looked_at_after:
            assert scribe.journal.records == scribe.expected
        chapter(scribe)
    return scribe


LENGTH = 14
LOOKS = [None, *range(len(CHAPTERS))]


@pytest.mark.parametrize("looked_at_after", LOOKS)
def test_since_any_position_is_the_rest_of_all_records(looked_at_after: int | None) -> None:
    """`since(n)` is `records[n:]`, wherever n is in a batch or between two, whatever was asked for and read before."""
    for first in range(LENGTH + 2):
        for second in range(LENGTH + 2):
            scribe = written(looked_at_after)
            assert len(scribe.journal) == LENGTH
            assert scribe.journal.since(first) == scribe.expected[first:]
            assert scribe.journal.since(second) == scribe.expected[second:]
            assert len(scribe.journal) == LENGTH
            assert scribe.journal.records == scribe.expected


@pytest.mark.parametrize("looked_at_after", LOOKS)
def test_numbers_run_on_after_a_batch(looked_at_after: int | None) -> None:
    """Records of a process are numbered in their order, by ones, in batches or not, whether or not they were looked at."""
    scribe = written(looked_at_after)
    assert (scribe.journal.next_seq(1, 1), scribe.journal.next_seq(2, 1), scribe.journal.next_seq(1, 2)) == (11, 3, 1)
    scribe.one("next")
    scribe.batch("xy", node=2)
    scribe.one("last", node=2)
    assert [str(record.id) for record in scribe.journal.since(LENGTH)] == ["1.1.11", "2.1.3", "2.1.4", "2.1.5"]
    assert scribe.journal.records == scribe.expected


@pytest.mark.parametrize("looked_at_after", LOOKS)
def test_what_is_asked_for_piece_by_piece_is_all_that_there_is(looked_at_after: int | None) -> None:
    """Who asks after every chapter for what is new gets every record once."""
    scribe, seen = Scribe(), list[Record]()
    for number, chapter in enumerate(CHAPTERS):
        if number == looked_at_after:
            assert scribe.journal.records == scribe.expected
        chapter(scribe)
        seen += scribe.journal.since(len(seen))
    assert seen == scribe.expected


def test_there_is_one_list_of_all_records() -> None:
    """`records` is the same list each time, to which new records are added."""
    scribe = written()
    records = scribe.journal.records
    scribe.batch("lm")
    assert scribe.journal.records is records
    assert records == scribe.expected


@pytest.mark.parametrize("looked_at_after", LOOKS)
def test_a_copy_with_batches_shares_nothing_that_changes(looked_at_after: int | None) -> None:
    """Neither reading nor writing in a journal or its copy can be seen in the other one."""
    scribe = written(looked_at_after)
    for reads in ((), (4,), (0, 6)):
        journal = scribe.journal.copy()
        twin = journal.copy()
        for one, other in ((journal, twin), (twin, journal)):
            length, number = len(other), other.next_seq(1, 1)
            for position in reads:
                one.since(position)
            one.add_batch(1, 1, 0, spell, ("yz", (0, 1)))
            one.add(1, 1, "mine", None, 0, {})
            assert (len(other), other.next_seq(1, 1)) == (length, number)
            assert len(one.copy().records) == len(one)
        assert [record.kind for record in journal.records] == [record.kind for record in twin.records]
        assert journal.records == twin.records == [*scribe.expected, *journal.since(LENGTH)]


def test_unread_batches_make_no_records() -> None:
    """A read makes the records from its entry on, once each; earlier entries stay columns."""
    spelled = list[str]()

    def noting(text: str, number: int) -> RecordParts:
        spelled.append(text)
        return spell(text, number)

    scribe = Scribe()
    for words in ("ab", "cde", "f"):
        scribe.batch(words, spell=noting)
        scribe.one("between")
    journal = scribe.journal
    journal.copy()
    assert (len(journal), journal.next_seq(1, 1), spelled) == (9, 10, [])
    journal.since(6)
    assert spelled == ["f"]
    journal.since(4)
    assert spelled == ["f", "c", "d", "e"]
    assert journal.records == scribe.expected
    assert journal.since(0) == scribe.expected
    assert spelled == ["f", "c", "d", "e", "a", "b"]


def test_the_columns_of_a_batch_are_as_long_as_each_other() -> None:
    """A row without a value in one of the columns is an error, and no record that lacks it."""
    journal = Journal()
    journal.add_batch(1, 1, 0, spell, ("ab", (0,)))
    with pytest.raises(ValueError, match="shorter"):
        journal.since(0)
