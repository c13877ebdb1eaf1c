"""Gives a call of an unknown name, or with missing, unknown or too many arguments, an error of one sentence with the right one.

Python checks the arguments before the first line of a function, so such a call changes nothing. It raises TypeError, whose text
has the name of a class and no remedy. Each command of a lab, of its namespaces and of the modules `exercises` and `rules` raises
UserError in its place.
"""

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from kcontrol.core.errors import UserError
from kcontrol.views import folded_state, group_moments, text

Function = TypeVar("Function", bound=Callable[..., Any])
MOST, LONGEST = 9, 40  # how many names of consumers, groups or brokers a sentence lists, and the most characters of each
REASONS = {"missing": "needs the argument {}", "multiple": "gets the argument {} twice", "got": "has no argument {}"}
CHOICES: Mapping[str, Callable[[Mapping[str, Any]], Iterable[object]]] = {
    "consumer": lambda state: sorted(state.get("consumers", {})),
    "group": group_moments.groups,
    "broker": lambda state: sorted(map(int, state["nodes"])),
    "partition": lambda state: [partition.name for partition in folded_state.partitions(dict(state))],
}
"""For the name of an argument, its values in a state of the cluster."""


OWNERS: dict[str, type] = {}
"""By the name of an object with commands, such as "lab.zk": its class."""
LISTED = 30
"""The most names that the error for an unknown name lists; objects with more names are listed by `help`."""


class NoSuchName(UserError, AttributeError):
    """The error for a name that an object with commands does not have."""


class Commands:
    """The base class of objects whose public methods are commands: a call with wrong arguments raises UserError.

    `owner` is the name of such an object in the text of the error, such as "lab.zk". With `opened_as`, such as "Lab", a wrong
    call of the class raises UserError too.
    """

    _owner = ""

    def __init_subclass__(cls, owner: str = "", opened_as: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._owner = owner or cls._owner
        OWNERS[cls._owner] = cls
        if opened_as:
            setattr(cls, "__init__", checked(cls.__init__, opened_as))  # noqa: B010 - mypy allows no assignment to a method
        for name, member in [*vars(cls).items()]:
            if not name.startswith("_") and inspect.isfunction(member):
                setattr(cls, name, checked(member))
            elif isinstance(member, classmethod | staticmethod):
                setattr(cls, name, type(member)(checked(member.__func__, f"{cls.__name__}.{name}")))

    if not TYPE_CHECKING:  # with it mypy would accept every name as an attribute

        def __getattr__(self, name: str) -> Any:
            # Python, IPython and copy test for names with an underscore to find the abilities of an object.
            if name.startswith("_"):
                raise AttributeError(name)
            raise NoSuchName(f"There is no {self._owner}.{text.clean(name, LONGEST)}; {_names_like(self, name)}.")

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.startswith("_")]


def _names_like(owner: Commands, name: str) -> str:
    """Such as "it has tables.znodes" for `lab.znodes`; without a close name all names, or where `help` lists them."""
    within = f"{owner._owner}."
    known = dir(owner) + [
        f"{space.removeprefix(within)}.{inner}"
        for space, kind in OWNERS.items() if space.startswith(within)
        for inner in dir(kind) if not inner.startswith("_")
    ]  # fmt: skip
    alike = difflib.get_close_matches(name, {full.rpartition(".")[2] for full in known}, 3, 0.75)
    if close := [full for full in known if full.rpartition(".")[2] in alike]:
        return f"it has {text.listed(close, MOST)}"
    return f"it has {text.listed(dir(owner), LISTED)}" if len(dir(owner)) <= LISTED else f"help({owner._owner}) lists its names"


def check_all(module: MutableMapping[str, Any], names: Iterable[str]) -> None:
    """Wrap the functions `names` of a module, so that a call with wrong arguments raises UserError."""
    for name in names:
        if inspect.isfunction(module[name]):
            module[name] = checked(module[name], f"{module['__name__'].rpartition('.')[2]}.{name}")


def checked(function: Function, called: str = "") -> Function:
    """Return a function that calls `function`; for a call with wrong arguments it raises UserError, which shows the right call.

    `called` is the name of `function` in this text; "" means the names of the object and of the method, such as "lab.kill".
    """

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        try:
            return function(*given, **named)
        except TypeError:
            try:
                inspect.signature(function).bind(*given, **named)
            except TypeError as problem:
                owner = None if called else given[0]
                name = called or f"{given[0]._owner}.{function.__name__}"
                raise UserError(_sentence(function, name, owner, str(problem))) from None
            raise

    return cast(Function, call)


def _sentence(function: Callable[..., Any], called: str, owner: Any, problem: str) -> str:
    taken = [parameter for parameter in inspect.signature(function).parameters.values() if parameter.name not in ("self", "cls")]
    found = re.search(r"'(\w+)'", problem)
    name = found[1] if found else ""
    reason = REASONS.get(problem.partition(" ")[0], "has too many arguments").format(name)
    return f"{called} {reason}: call it as {called}({', '.join(map(_shown, taken))}){_choices(owner, name)}."


def _shown(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return f"{'*' if parameter.kind is parameter.VAR_POSITIONAL else ''}{parameter.name}{default}"


def _choices(owner: Any, name: str) -> str:
    """Such as "; the consumers are anna and bert" for `consumer`; "" for an argument that CHOICES lacks, or without values."""
    run = getattr(owner, "_lab", None) or getattr(owner, "_run", None) or owner
    if name not in CHOICES or not isinstance(state := getattr(run, "state", None), Mapping):
        return ""
    values = [text.clean(str(value), LONGEST) for value in CHOICES[name](state)]
    verb = f"s are {text.listed(values, MOST)}" if len(values) > 1 else f" is {''.join(values)}"
    return f"; the {name}{verb}" if values else ""
