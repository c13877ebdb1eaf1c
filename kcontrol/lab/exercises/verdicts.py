"""Shows the verdict of a check: a sign, a text, the output of the answer, pictures, and for a right answer kcontrol's code."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple, Protocol

from kcontrol.views import replica_strip, still_picture, text

PRINTED, CODE = "Your answer has printed", "The code of kcontrol"
# sign, and the colour of JupyterLab's theme with a fallback for other pages
SIGNS = {True: ("\u2713", "var(--jp-success-color1, #388e3c)"), False: ("\u2717", "var(--jp-error-color1, #d32f2f)")}
Data = Mapping[str, Any]


class Picture(Protocol):
    """A picture as SVG, whose `repr` is its content as text."""

    def svg(self) -> str: ...


class Election(NamedTuple):
    """The picture of an election: the replicas in the order of the assignment, and the leader that a rule elected."""

    # The text above the picture.
    title: str
    assignment: Sequence[int]
    # The in-sync and the live replicas with which the rule was called, as broker ids.
    isr: Sequence[int]
    live: Sequence[int]
    # None if the rule elected no leader.
    leader: int | None

    @property
    def candidates(self) -> tuple[replica_strip.Candidate, ...]:
        """One candidate per assigned replica, with words such as "in sync" or "dead"; a leader outside the assignment is last."""
        unassigned = [self.leader] if self.leader is not None and self.leader not in self.assignment else []
        return tuple(self._candidate(broker) for broker in [*self.assignment, *unassigned])

    def _candidate(self, broker: int) -> replica_strip.Candidate:
        alive, in_sync, leads = broker in self.live, broker in self.isr, broker == self.leader
        where = "no replica" if broker not in self.assignment else "in sync" if in_sync else "not in sync"
        words = [*["leads"] * leads, *["dead"] * (not alive), *[where] * (alive or not in_sync)]
        return replica_strip.Candidate(broker, alive, in_sync, leads, ", ".join(words[:2]))

    def svg(self) -> str:
        """Return the picture of the election (the replicas and the elected leader) as SVG text."""
        return replica_strip.svg(self.title, self.candidates)

    def __repr__(self) -> str:
        return replica_strip.lines(self.title, self.candidates)


class Cluster(NamedTuple):
    """The picture of a cluster: its brokers, the controller, and the partitions, below the text `title`."""

    title: str
    brokers: Sequence[int]
    # As `journal.fold` computes it from the journal of the run.
    state: dict[str, Any]

    def svg(self) -> str:
        """Return the picture as SVG text."""
        return still_picture.svg(self.state, self.brokers, self.title)

    def __repr__(self) -> str:
        return f"{self.title}: {text.summary(self.state, self.brokers)}"


def pictures(drawn: Sequence[Data]) -> tuple[Picture, ...]:
    """Return a picture for each mapping in `drawn`: an `Election` if the mapping has the key `leader`, else a `Cluster`.

    Raises TypeError, ValueError, LookupError or AttributeError for invalid data.
    """
    # A mapping has the arguments of its class by name.
    made: list[Picture] = [Election(**about) if "leader" in about else Cluster(**about) for about in drawn]
    for picture in made:
        picture.svg()  # raises for data that an answer has forged
    return tuple(made)


class Verdict(NamedTuple):
    """The result of a check: whether the answer passed, a text for the learner, the misconception of a known wrong answer."""

    passed: bool
    text: str
    misconception: str | None = None
    # Whether a check mark or a cross is shown; an empty answer has none.
    signed: bool = False
    # The output of the answer.
    printed: str = ""
    # Pictures of the first comparison that is wrong; none for a right answer.
    pictures: tuple[Picture, ...] = ()
    # The function of kcontrol that the exercise is about, for an answer that passed.
    code: str = ""

    def __repr__(self) -> str:
        sign = [SIGNS[self.passed][0]] if self.signed else []
        return "\n".join([" ".join([*sign, self.text]), *map(repr, self.pictures), *self._parts()])

    def _parts(self) -> list[str]:
        """The answer's output and the source of kcontrol's function, each below its heading and only if there is one."""
        found = ((PRINTED, self.printed), (CODE, self.code))
        return ["\n".join([f"{heading}:", *(f"    {line}" for line in _lines(words))]) for heading, words in found if words]

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{escape(line)}</p>" for line in self.text.splitlines())
        if not self.signed:
            return said
        sign, colour = SIGNS[self.passed]
        said = said.replace("<p>", f'<p><b style="color:{colour}">{sign}</b> ', 1)
        parts = "".join([said, self._printed(), self._images(), self._code()])
        return f'<div style="border-left:4px solid {colour};padding-left:12px">{parts}</div>'

    def _printed(self) -> str:
        return f"<p>{PRINTED}:</p><pre>{escape(_shown(self.printed))}</pre>" if self.printed else ""

    def _images(self) -> str:
        images = ((b64encode(p.svg().encode()).decode(), escape(repr(p), quote=True)) for p in self.pictures)
        return "".join(f'<p><img alt="{words}" src="data:image/svg+xml;base64,{data}"></p>' for data, words in images)

    def _code(self) -> str:
        return f"<details><summary>{CODE}</summary><pre>{escape(self.code)}</pre></details>" if self.code else ""


def _lines(words: str) -> list[str]:
    return [text.clean(line.expandtabs()) for line in words.splitlines()]


def _shown(words: str) -> str:
    return "\n".join(_lines(words))
