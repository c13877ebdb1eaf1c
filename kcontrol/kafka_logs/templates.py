"""Templates of Kafka's log lines: a template is filled with facts (named values), or becomes the regular expression of its lines.

    partition {topic}-{partition}                      facts; FACTS has the type of a fact that is no text
    List({isr:seq})                                    a fact with another type than that in FACTS
    {role=become-leader|become-follower}               a fact whose value is one of these texts
    {:rest}                                            a text that is no fact
    «restabilize|0.11:rebalance» group                 what releases print; the first up to 0.10.2, the next since 0.11
    «| with leader {leader}»                           what a line may lack
    «Live brokers: {live}|Active brokers: {live}»      forms that the table does not date

A filled template has the option of the newest "since" that the release has reached; of several such options the last one whose
facts are all there. So an option that the journal lacks a fact for is left out if it is not dated, and has no line if it is. The
regular expression has all options of all releases. A fact that a line states twice is read at the first place.

A regular expression is one for Java (Spark) and for Python, except for the names of its groups, which Java does not allow in this
form (`patterns.py` removes them). The second group of the fact `leader` is named `leader2`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

IDS = r"(?:\d+(?:, ?\d+)*)?"


def _joined(separator: str, form: str = "{}") -> Callable[[Any], str]:
    return lambda values: separator.join(map(form.format, values))


class Type(NamedTuple):
    """How the values of a fact are written: read with the regular expression, converted as `json` says, and written by `text`."""

    pattern: str
    json: str = "text"
    text: Callable[[Any], str] = str


TYPES = {
    "text": Type(r".+?"),
    "rest": Type(r".*"),
    "word": Type(r"\w+"),
    "token": Type(r"\S+?"),
    "topic": Type(r"[A-Za-z0-9._-]+"),
    "old_topic": Type(r"[^\[\],\s]+"),
    "blanks": Type(r"\s*"),
    "int": Type(r"-?\d+", "int"),
    "decimal": Type(r"[\d.]+", "int"),
    "bool": Type(r"\w+", "bool"),
    "option": Type(r".+?", "option", lambda value: "None" if value is None else f"Some({value})"),
    "bare": Type(r".+?", "option"),
    "short": Type(r"\w+", text=lambda state: state.removesuffix("Partition").replace("NonExistent", "NotExists")),
    "ints": Type(IDS, "ints", _joined(",")),
    "seq": Type(IDS, "ints", _joined(", ")),
    "some_ints": Type(r"\d+(?:, ?\d+)*", "ints", _joined(",")),
    "numbers": Type(r".*?", "ints"),
    "ids": Type(r".*?", "ids", _joined(", ", "BrokerState(brokerId={}, brokerEpoch=-1)")),
    "topics": Type(r"\S+", "names", _joined(",")),
    "names": Type(r".*?", "names", _joined(", ")),
    "words": Type(r".*", "words"),
    "partitions": Type(r".*?", "partitions"),
    "some_partitions": Type(r"\S.*?", "partitions"),
    "listed": Type(r"\w*[(\[].*[)\]]", "partitions"),
    "assignment": Type(r".*", "assignment"),
    "states": Type(r".*", "states"),
    "epochs": Type(r".*", "epochs"),
    "replicas": Type(r".*?", "replicas"),
    "state": Type(r".*?", "state"),
    "whole_state": Type(r"LeaderAndIsr\(.*\)", "state"),  # at the end of a line, which may be cut
    # What a response says, before its text: facts at places that differ between releases, each found by looking ahead.
    "response_facts": Type(
        r"(?:(?=correlationId (?P<correlation2>\d+) "
        r"|(?P<api2>LeaderAndIsr|StopReplica|UpdateMetadata)Response\((?P<correlation3>\d+),))?"
        r"(?:(?=\{.*?[,\[](?P<lists>partitions)=))?"
        r"(?:(?=.*?(?:rror_?[cC]ode=|\) -> )(?=-?[1-9])(?P<error>-?\d+)|\S*,(?=-?[1-9])(?P<error2>-?\d+)\) for ))?"
    ),
    "why_ignored": Type(r"(?:since its associated leader epoch (?P<leader_epoch>\d+)|as ).*?"),
}
"""`short` is a partition's state in 0.8.0. `option` is a value of Scala's type Option, `bare` one without "Some"."""

FACTS = {
    name: kind
    for kind, names in {
        "int": """broker caught_up controller coordinator_partition correlation epoch epoch_ms error generation hw
            leader leader_epoch leo members ms n n_added n_deleted n_followers n_leaders offset old_leader old_leader_epoch
            other_epoch partition preferred replica rf scheduler_ms state_epoch static_members to_broker total zk_version""",
        "ints": "added bounced brokers deleted isr live replicas",
        "some_ints": "isr_from isr_to missing",
        "word": "api election_type from_state protocol recovery to_state trigger",
        "token": "current_member member offsets_partition old_member operation version",
        "rest": "leader_node reason request to_node",
        "bool": "delete is_new",
        "option": "instance topic_id topic_id_received",
        "names": "added_topics deleted_topics groups",
        "numbers": "to_brokers",
        **{name: name for name in ("topic", "topics", "partitions", "assignment", "state", "states")},
    }.items()
    for name in names.split()
}
"""The type of each fact that is no text, where a template does not name another."""

LISTS = ("ints", "ids", "partitions", "names", "words", "assignment", "states", "epochs", "replicas")
"""The conversions whose group also takes the character before the list: an empty list is ":", and "" is a list that is absent."""


class Fact(NamedTuple):
    name: str
    type: str
    # The only texts that the fact can have; () means all texts of its type.
    texts: tuple[str, ...] = ()

    @property
    def pattern(self) -> str:
        return "|".join(map(escaped, self.texts)) if self.texts else TYPES[self.type].pattern

    def filled(self, facts: Mapping[str, Any]) -> str | None:
        if len(self.texts) == 1:
            return self.texts[0]
        return TYPES[self.type].text(facts[self.name]) if self.name in facts else None


class Choice(NamedTuple):
    """The options of a part of a line, each with the numbers of the first release that prints it; () means the oldest."""

    options: tuple[tuple[tuple[int, ...], Template], ...]

    def filled(self, at: tuple[int, ...], facts: Mapping[str, Any]) -> str | None:
        newest = max(since for since, _ in self.options if since[: len(at)] <= at)
        texts = (filled(template, at, facts) for since, template in reversed(self.options) if since == newest)
        return next((text for text in texts if text is not None), None)


Template = tuple["str | Fact | Choice", ...]
TOKEN = re.compile(r"(?P<mark>[«|»])|\{(?=\w|:)(?P<name>\w*)(?::(?P<type>\w+)|=(?P<texts>[^{}]+))?\}|(?P<text>[^«|»{]+|\{)")
SINCE = re.compile(r"(\d+(?:\.\d+)+):")
SPECIAL = re.compile(r"[][.{}()*+?^$|\\]")


def numbers(release: str) -> tuple[int, ...]:
    """Return a release as numbers, (2, 8) for "2.8"; (99,), which is later than every release, for a text without numbers."""
    return tuple(map(int, re.findall(r"\d+", release))) or (99,)


@cache
def parsed(text: str) -> Template:
    """Raises ValueError for a choice that is not closed."""
    found, end = _sequence(TOKEN.finditer(text))
    if end:
        raise ValueError(f"{end} has no « before it: {text}")
    return found


def _sequence(tokens: Iterator[re.Match[str]]) -> tuple[Template, str]:
    """Return the template up to the next | or » that is no part of an inner choice, and this mark; "" at the end."""
    found: list[str | Fact | Choice] = []
    for token in tokens:
        if token["mark"] == "«":
            found.append(_choice(tokens))
        elif token["mark"]:
            return tuple(found), token["mark"]
        elif token["text"]:
            found.append(token["text"])
        else:
            texts = tuple((token["texts"] or "").split("|")) if token["texts"] else ()
            found.append(Fact(token["name"], token["type"] or FACTS.get(token["name"], "text"), texts))
    return tuple(found), ""


def _choice(tokens: Iterator[re.Match[str]]) -> Choice:
    options: list[tuple[tuple[int, ...], Template]] = []
    since: tuple[int, ...] = ()
    mark = "|"
    while mark == "|":
        template, mark = _sequence(tokens)
        if template and isinstance(first := template[0], str) and (dated := SINCE.match(first)):
            since, template = numbers(dated[1]), (first[dated.end() :], *template[1:])
        options.append((since, tuple(part for part in template if part != "")))
    if mark != "»":
        raise ValueError("A choice is not closed.")
    return Choice(tuple(options))


def filled(template: Template, at: tuple[int, ...], facts: Mapping[str, Any]) -> str | None:
    """Return the text that the release `at`, such as (2, 8), prints; None if a fact is missing."""
    texts = []
    for part in template:
        text = part if isinstance(part, str) else part.filled(facts) if isinstance(part, Fact) else part.filled(at, facts)
        if text is None:
            return None
        texts.append(text)
    return "".join(texts)


def escaped(text: str) -> str:
    return SPECIAL.sub(r"\\\g<0>", text)


def pattern(template: Template) -> str:
    """Return the regular expression of all lines of a template, with a named group per place of a fact."""
    return _pattern(template, set(), Counter())


def _pattern(template: Template, seen: set[str], groups: Counter[str]) -> str:
    """`seen` has the facts that the line has stated before, and gets those of `template`; `groups` counts the groups by fact."""
    found = ""
    for place, part in enumerate(template):
        if isinstance(part, str):
            found += escaped(part)
        elif isinstance(part, Choice):
            found += _options(part, seen, groups)
        elif part.name in ("", *seen):
            found += f"(?:{part.pattern})"
        else:
            seen.add(part.name)
            groups[part.name] += 1
            before = template[place - 1] if place else ""
            mark = escaped(before[-1:]) if isinstance(before, str) and TYPES[part.type].json in LISTS else ""
            found = found.removesuffix(mark) if mark else found
            found += f"(?P<{part.name}{groups[part.name] if groups[part.name] > 1 else ''}>{mark}{part.pattern})"
    return found


def _options(choice: Choice, seen: set[str], groups: Counter[str]) -> str:
    options: dict[str, str] = {}  # without the numbers of groups -> with them
    after = set(seen)
    for _, template in choice.options:
        own = set(seen)
        text = _pattern(template, own, groups)
        options.setdefault(re.sub(r"(\?P<[a-z_]+)\d+>", r"\1>", text), text)
        after |= own
    seen |= after
    optional = "?" if options.pop("", None) is not None else ""
    texts = list(options.values())
    if all(len(text) == 1 for text in texts):
        return (f"[{''.join(texts)}]" if len(texts) > 1 else "".join(texts)) + optional
    return f"(?:{'|'.join(texts)}){optional}"


def facts_of(template: Template) -> dict[str, str]:
    """Return the facts of a template in order, each with its conversion to JSON; a fact has one in all its places."""
    found: dict[str, str] = {}
    for part in template:
        if isinstance(part, Fact):
            found |= {part.name: TYPES[part.type].json} if part.name else {}
            inner = re.findall(r"\?P<([a-z_]+)", part.pattern)
            found |= {name: TYPES[FACTS.get(name, "text")].json for name in inner}
        elif isinstance(part, Choice):
            for _, option in part.options:
                found |= {name: kind for name, kind in facts_of(option).items() if name not in found}
    return found


def literals(template: Template) -> list[str]:
    """Return the texts that each line of a template has, from left to right."""
    return [part for part in template if isinstance(part, str)]
