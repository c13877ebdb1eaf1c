"""Commands that are called with missing, unknown or too many arguments: one sentence, and the lab is as it was."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from kcontrol import Lab, exercises, rules
from kcontrol.core.errors import UserError
from kcontrol.lab.support import arguments
from kcontrol.lab.support.calls import checked

Opened = Callable[..., Lab]
TOPICS = {"__consumer_offsets": [[1, 2, 3]], "t": [[1, 2, 3]] * 2}
OWNERS = ("lab", "lab.group", "lab.zk", "lab.network", "lab.disks", "lab.tables", "exercises", "rules")


def cluster(opened: Opened, release: str = "2.8") -> Lab:
    """Return a lab with two consumers of one group, one of which has sent JoinGroup."""
    lab = opened(3, release=release, topics=TOPICS, consumers={"anna": "billing", "bert": "billing"})
    return lab.group.join("anna").run()


def found(lab: Lab, owner: str) -> Any:
    """Return the object that a reader calls `owner`."""
    value: Any = {"lab": lab, "exercises": exercises, "rules": rules}[owner.partition(".")[0]]
    return getattr(value, owner.partition(".")[2]) if "." in owner else value


def refused(lab: Lab, call: Callable[..., object], /, *given: object, **named: object) -> str:
    """Return the sentence of a refused call, which has changed neither the journal nor the state nor the possible actions."""
    before = len(lab.records), lab.state, lab.actions()
    with pytest.raises(UserError) as raised:
        call(*given, **named)
    assert (len(lab.records), lab.state, lab.actions()) == before
    sentence = str(raised.value)
    assert (
        (raised.value.__context__ is None or raised.value.__suppress_context__)
        and sentence.endswith(".")
        and "\n" not in sentence
        and ". " not in sentence
    )
    return sentence


@pytest.mark.parametrize("owner", OWNERS)
def test_a_command_has_no_unknown_argument(opened: Opened, owner: str) -> None:
    """Each command that is called with an unknown argument is one sentence, with the command and its arguments."""
    lab = cluster(opened)
    names = [name for name in dir(found(lab, owner)) if inspect.isroutine(getattr(found(lab, owner), name))]
    assert names
    for name in names:
        said = refused(lab, getattr(found(lab, owner), name), **dict.fromkeys(needed(found(lab, owner), name)), nonsense=1)
        assert f"{name} has no argument nonsense: call it as " in said and f".{name}(" in said


def needed(owner: Any, name: str) -> list[str]:
    """Return the names of the arguments without a default."""
    taken = inspect.signature(getattr(owner, name)).parameters.values()
    return [p.name for p in taken if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_missing_consumer_is_named(opened: Opened, release: str) -> None:
    """A command of `lab.group` that is called without its consumer lists the consumers of the lab."""
    lab = cluster(opened, release)
    for name in [name for name in dir(lab.group) if "consumer" in needed(lab.group, name)]:
        said = refused(lab, getattr(lab.group, name))
        assert said.startswith(f"lab.group.{name} needs the argument consumer: call it as lab.group.{name}(consumer")
        assert said.endswith("; the consumers are anna and bert.")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda lab: lab.kill(), "lab.kill needs the argument broker: call it as lab.kill(broker); the brokers are 1, 2 and 3."),
        (lambda lab: lab.group.join("anna", 1, 2), "has too many arguments: call it as lab.group.join(consumer, broker=None)."),
        (lambda lab: lab.group.join("anna", consumer="bert"), "lab.group.join gets the argument consumer twice: call it as"),
        (lambda lab: lab.group.describe_group(), "lab.group.describe_group(group, broker=None); the group is billing."),
        (lambda lab: lab.commit("anna"), "the partitions are __consumer_offsets-0, t-0 and t-1."),
        (lambda lab: lab.rewind(3).why(), "run.why needs the argument what: call it as run.why(what)."),
        (lambda lab: lab.group.list_groups("Stable", state=1), "call it as lab.group.list_groups(*states, broker=None)."),
        (lambda _: Lab.open(), "Lab.open needs the argument path: call it as Lab.open(path)."),
        (lambda _: Lab(brokres=3), "Lab has no argument brokres: call it as Lab(brokers=3, release='2.8', "),
        (lambda _: Lab.play(), "Lab.play needs the argument scenario: call it as Lab.play(scenario, "),
    ],
)  # fmt: skip
def test_the_sentence_says_what_is_possible(opened: Opened, call: Callable[[Lab], object], said: str) -> None:
    """A wrong call says which argument is wrong, how the command is called, and which consumers, brokers or groups there are."""
    lab = cluster(opened)
    assert said in refused(lab, call, lab)


def test_a_namespace_is_no_command(opened: Opened) -> None:
    """A namespace that is called like a command lists its commands."""
    lab = cluster(opened)
    assert refused(lab, lab.group, "anna").startswith("lab.group is no command; it has the commands delete_groups, ")  # type: ignore[operator]


def test_an_error_inside_a_command_is_kept() -> None:
    """A TypeError that the function itself raises is no wrong call, and stays as it is."""

    def command(self: object, number: int) -> int:
        return number + "one"  # type: ignore[operator, no-any-return]

    with pytest.raises(TypeError, match="unsupported operand"):
        checked(command, "command")(None, 1)


def test_a_name_that_is_none_of_the_legal_ones() -> None:
    """A sentence has the value and the legal names; without names it says so."""
    for legal, ending in ((("a", "b c"), "choose one of 'a' and 'b c'."), ((), "there is none yet.")):
        for value in ("x", 7, None, ["a"]):
            with pytest.raises(UserError) as problem:
                arguments.one_of(value, legal, "exercise")
            assert str(problem.value) == f"There is no exercise {value!r}: {ending}"
    assert arguments.one_of("b c", ("a", "b c"), "exercise") == "b c"
