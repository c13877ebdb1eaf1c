"""The viewer: a widget that goes through a journal, and offers what can happen next.

Traits that travel to the browser (all plain JSON):

* `records`: rows as `views.rows` makes them. They travel whole only when the widget is made or a page is reloaded; what comes
  later is sent as a message `{"append": rows, "from": index}`, upon which the browser goes to the last record, and `count` says
  how many there should be.
* `brokers`, `release`, `world`, `title`: what is looked at; `clock`: what its times are, see `views.clock`. `live`: whether
  there is anything that can be stepped.
* `at`: the index of the record that is shown. `asked`: the id of the record whose causes are shown, or an empty list.
  `details`: whether records that show nothing of their own are listed and stepped through.
* `actions`: what can happen next, as [action, label, "routine" or "fault"]; `held`: why nothing may be done yet, or "".
* `branches`: the names of the runs that can be switched to, `branch` that of the one shown; none where there is no switching.
* `other`: the rows of a run that is shown beside this one, under the name `other_name`; `parted` is the index of the first
  record at which they part, or -1.
* `busy`, `error`: whether something is being done, and what went wrong with the last thing; `done`: the last wish that was done.

Messages from the browser: `{"do": "step", "n": 3, "action": [...]}` (without an action: what is next), `{"do": "run", "n": 4}`,
`{"do": "switch", "name": "main"}`, `{"do": "branch", "name": "", "at": 7}`, `{"do": "without", "at": 7}`,
`{"do": "compare", "name": "main"}`, `{"do": "records", "from": 120}` for what it has missed,
`{"do": "show", "at": 7, "asked": [], "details": false}` for where it is.
Everything else happens in the browser alone, without a kernel.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import anywidget
import traitlets

from kcontrol.errors import UserError
from kcontrol.runtime import journal
from kcontrol.runtime.history import History
from kcontrol.runtime.journal import Record, RecordId, plain
from kcontrol.views import bundle, picture, scene, text
from kcontrol.views.meanings import decided
from kcontrol.views.rows import about_run, row

AT_ONCE = 5_000  # rows in one message


class Stepper(Protocol):
    """What a viewer can step: a journal that grows, what can happen next, and two ways to go on."""

    @property
    def records(self) -> Sequence[Record]: ...
    def actions(self) -> Sequence[Sequence[Any]]: ...
    def step(self, action: Any) -> object: ...
    def run(self) -> object: ...


@runtime_checkable
class Branching(Protocol):
    """A stepper that has branches: others like itself by name, the one from which all come first."""

    @property
    def branches(self) -> Mapping[str, Any]: ...
    def branch(self, name: str, at: Any = None) -> Any: ...
    def without(self, record: Any) -> Any: ...
    def compare(self, one: Any, other: Any = None) -> Any: ...


class Viewer(anywidget.AnyWidget):
    """`Viewer(stepper)` shows a cluster and steps it; `Viewer(records=...)` only shows a journal.

    Every button has a method of the same effect. Methods that go through the journal raise UserError for a record that is not
    there; `click_step` and `click_run` raise what the stepper raises, and show it in the widget too.
    """

    _esm = bundle.script()
    _css = bundle.style()

    records: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    count = traitlets.Int(0).tag(sync=True)
    brokers: traitlets.List[int] = traitlets.List().tag(sync=True)
    release = traitlets.Unicode("").tag(sync=True)
    world = traitlets.Unicode("").tag(sync=True)
    clock = traitlets.Unicode("virtual").tag(sync=True)
    title = traitlets.Unicode("").tag(sync=True)
    at = traitlets.Int(0).tag(sync=True, echo_update=False)
    asked: traitlets.List[int] = traitlets.List().tag(sync=True, echo_update=False)
    details = traitlets.Bool(False).tag(sync=True, echo_update=False)
    actions: traitlets.List[list[Any]] = traitlets.List().tag(sync=True)
    live = traitlets.Bool(False).tag(sync=True)
    branches: traitlets.List[str] = traitlets.List().tag(sync=True)
    branch = traitlets.Unicode("").tag(sync=True)
    other: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    other_name = traitlets.Unicode("").tag(sync=True)
    parted = traitlets.Int(-1).tag(sync=True)
    held = traitlets.Unicode("").tag(sync=True)
    busy = traitlets.Bool(False).tag(sync=True)
    error = traitlets.Unicode("").tag(sync=True)
    done = traitlets.Int(0).tag(sync=True)

    def __init__(self, stepper: Stepper | None = None, *, records: Iterable[Record] = (), title: str = "") -> None:
        self._stepper, self._held = stepper, list(records)
        self._history, self._folded = History(self._source), 0
        self._sessions: dict[int, tuple[int, bool]] = {}
        rows = [row(record) for record in self._source]
        self._take_in()
        place = {"records": rows, "count": len(rows), "at": max(0, len(rows) - 1), "actions": self._offered()}
        super().__init__(title=title, live=stepper is not None, **place, **about_run(rows))
        self.look_around()
        self.on_msg(self._on_message)

    # ---------------------------------------------------------------- what is shown

    @property
    def _source(self) -> Sequence[Record]:
        return self._stepper.records if self._stepper else self._held

    def refresh(self) -> None:
        """Take over what has been recorded since, and go to the last record; call it after stepping the world in another way."""
        source = self._source
        known = len(self.records)
        if known > len(source) or (known and list(source[known - 1].id) != self.records[-1]["id"]):
            self._start_anew()
        else:
            self._send_rows(known, self._append(source[known:]))
        with self.hold_sync():
            self.count, self.at = len(self.records), max(0, len(self.records) - 1)
            self.actions = self._offered()
        self.look_around()

    def show(self, stepper: Stepper) -> None:
        """Look at another world from now on."""
        self._stepper, self.live = stepper, True
        self._start_anew()
        self.refresh()

    # ---------------------------------------------------------------- branches

    @property
    def _family(self) -> Mapping[str, Any]:
        stepper: object = self._stepper
        return stepper.branches if isinstance(stepper, Branching) else {}

    def look_at(self, stepper: object) -> None:
        """Take over what has happened in this run, if it is the one that is shown, or the one beside it."""
        if stepper is self._stepper:
            self.refresh()
        elif self.other_name and self._family.get(self.other_name) is stepper:
            self.look_around()

    def look_around(self) -> None:
        """Take over which branches there are, and what has happened in the one that is shown beside this one."""
        family = self._family
        own = next((name for name, stepper in family.items() if stepper is self._stepper), "")
        with self.hold_sync():
            self.branches, self.branch = list(family), own
            if self.other_name:
                self._put_beside(self.other_name)

    def _put_beside(self, name: str) -> None:
        found = self._family[name].records
        common = min(len(found), len(self.records))
        if self.other_name != name or not 0 <= self.parted < common:
            parting = self._family[self.branch].compare(self.branch, name)
            self.parted = parting.at if any(parting.records) else -1
        if self.other_name != name or len(self.other) != len(found):
            self.other = [row(record) for record in found]
        self.other_name = name

    def click_switch(self, name: str) -> None:
        """Look at another branch from now on. Raises UserError, listing them, for one that is not there."""
        chosen = self._branch_named(name)
        self.click_compare("")
        self.title = "" if name == self.branches[0] else name
        self.show(chosen)

    def click_branch(self, name: str = "", at: int | None = None) -> None:
        """Branch off after the record that is shown, or after that number, and look at the branch; without a name it gets one."""
        stepper = self._branching()
        here = self.at if at is None else at
        numbers = (f"branch {n}" for n in range(1, len(self.branches) + 2))
        chosen = name or next(one for one in numbers if one not in self.branches)
        stepper.branch(chosen, None if here >= len(self.records) - 1 else here)
        self.look_around()
        self.click_switch(chosen)

    def click_without(self, record: int | str | Sequence[int] | None = None) -> None:
        """Play the run again without the act or fault behind a record, and show what comes of it beside this run."""
        at = self.at if record is None else self._index(record)
        found = self._branching().without(at)
        self.look_around()
        self.click_compare(found.names[1])

    def click_compare(self, name: str) -> None:
        """Show another branch beside this one, or with "" none. Raises UserError, listing them, for one that is not there."""
        if name:
            self._branch_named(name)
        with self.hold_sync():
            if name:
                self._put_beside(name)
            else:
                self.other, self.other_name, self.parted = [], "", -1

    def _branching(self) -> Branching:
        stepper: object = self._stepper
        if not isinstance(stepper, Branching):
            raise UserError("What this viewer shows has no branches.")
        return stepper

    def _branch_named(self, name: str) -> Any:
        self._branching()
        if name not in self._family:
            raise UserError(f"There is no branch {name!r}; the branches are {text.listed(self._family, 30)}.")
        return self._family[name]

    # ---------------------------------------------------------------- rows

    def _append(self, records: Iterable[Record]) -> list[dict[str, Any]]:
        rows = [row(record) for record in records]
        self.records.extend(rows)  # in place: a new list would travel whole
        self._take_in()
        return rows

    def _start_anew(self) -> None:
        self._history, self._folded, self._sessions = History(self._source), 0, {}
        rows = [row(record) for record in self._source]
        with self.hold_sync():
            self.records, self.asked = rows, []
            for name, value in about_run(rows).items():
                setattr(self, name, value)
        self._take_in()

    def _take_in(self) -> None:
        """Remember whose sessions are open."""
        for record in self._source[self._folded :]:
            fields = record.fields
            if record.kind == "open":
                self._sessions[fields["session"]] = (record.id.node, True)
            elif record.kind == "close":
                self._sessions.pop(fields["session"], None)
            elif record.kind == "stop":
                own = [id for id, (broker, _) in self._sessions.items() if broker == fields["broker"]]
                self._sessions.update((id, (fields["broker"], False)) for id in own)
        self._folded = len(self._source)

    def _send_rows(self, start: int, rows: Sequence[dict[str, Any]]) -> None:
        for first in range(0, len(rows), AT_ONCE):
            self.send({"append": rows[first : first + AT_ONCE], "from": start + first})

    def _offered(self) -> list[list[Any]]:
        """What can happen next, labelled, and told apart: what goes on by itself and what somebody does."""
        if self._stepper is None:
            return []
        state = self._history.state
        return [[plain(action), text.label(action, state), self._sort_of(action)] for action in self._stepper.actions()]

    def _sort_of(self, action: Sequence[Any]) -> str:
        by_itself = action[0] in text.ROUTINE
        if action[0] == "expire":
            by_itself = scene.is_left_behind(self._sessions, action[1])
        elif action[0] == "fire":
            by_itself = not scene.is_periodic(self._history.state, *action[1:])
        return "routine" if by_itself else "fault"

    # ---------------------------------------------------------------- the way through the journal

    def to(self, record: int | str | Sequence[int]) -> None:
        """Go to a record: by index, from the end if negative, or by id (`"3.1.41"` or three numbers)."""
        self.at = self._index(record)

    def back(self) -> None:
        """Go to the record before that changed or moved something; with `details` to the one before."""
        self.at = self._beside(self._listed(), -1)

    def forward(self) -> None:
        """Go to the next record that changed or moved something; with `details` to the next one."""
        self.at = self._beside(self._listed(), 1)

    def previous_fault(self) -> None:
        """Go to what somebody last did to the cluster before here, or to the beginning."""
        self.at = self._beside(self._weighing(2), -1)

    def next_fault(self) -> None:
        """Go to what somebody did next to the cluster, or to the end."""
        self.at = self._beside(self._weighing(2), 1)

    def why(self, record: int | str | Sequence[int] | None = None) -> list[str]:
        """Show the chain of causes of a record, and return it as lines, nearest cause first, each with its row, rule and source.

        None closes it.
        """
        if record is None:
            self.asked = []
            return []
        row = self.records[self._index(record)]
        self.asked = row["id"]
        chain = [record.plain() for record in journal.why(self._source, RecordId(*row["id"]))]
        return [" · ".join([*text.lines([record]), *decided(record, self.release)]) for record in chain]

    def _listed(self) -> list[int]:
        return self._weighing(0 if self.details else 1)

    def _weighing(self, least: int) -> list[int]:
        return [index for index, row in enumerate(self.records) if row["weight"] >= least]

    def _beside(self, indices: list[int], direction: int) -> int:
        last = max(0, len(self.records) - 1)
        place = bisect_right(indices, self.at) if direction > 0 else bisect_left(indices, self.at) - 1
        if 0 <= place < len(indices):
            return indices[place]
        return last if direction > 0 else 0

    def _index(self, record: int | str | Sequence[int]) -> int:
        if isinstance(record, int):
            index = record + len(self.records) if record < 0 else record
            if 0 <= index < len(self.records):
                return index
        else:
            wanted = [int(part) for part in record.split(".") if part.isdecimal()] if isinstance(record, str) else list(record)
            for index, row in enumerate(self.records):
                if row["id"] == wanted:
                    return index
        raise UserError(f"There is no record {record!r} in this journal, which has {len(self.records)}; name one by index or id.")

    # ---------------------------------------------------------------- what can be done

    def click_step(self, action: Sequence[Any] | None = None) -> None:
        """Do one action, or without one what is next by itself; then look at the last record."""
        self._do(lambda stepper: stepper.step(self._chosen(action)))

    def click_run(self) -> None:
        """Go on until the cluster is quiet; then look at the last record."""
        self._do(lambda stepper: stepper.run())

    def _chosen(self, action: Sequence[Any] | None) -> Any:
        assert self._stepper is not None
        if action is None:
            offered = next((one for one in self._stepper.actions() if self._sort_of(one) == "routine"), None)
            if offered is None:
                raise UserError("Nothing goes on by itself: the cluster is quiet. Choose a fault, or create a topic.")
            return offered
        wanted = scene.as_json(plain(action))  # from a browser tuples come back as lists
        return next((one for one in self._stepper.actions() if scene.as_json(plain(one)) == wanted), tuple(action))

    def _do(self, act: Callable[[Stepper], object]) -> None:
        if self._stepper is None:
            raise UserError("This viewer shows a journal that is finished: there is nothing to step.")
        self.busy = True
        try:
            act(self._stepper)
        except BaseException as problem:
            self.error = str(problem) if isinstance(problem, UserError) else f"{type(problem).__name__}: {problem}"
            raise
        else:
            self.error = ""
        finally:
            try:
                self.refresh()
            finally:
                self.busy = False

    def _on_message(self, _: Any, message: dict[str, Any], buffers: Any) -> None:
        """What a browser asks for. What goes wrong is shown in the widget, where the click was."""
        wish = message.get("do")
        if wish == "records":
            start = int(message["from"])
            self._send_rows(start, self.records[start:])
            return
        if wish == "show":
            self.set_state({name: message[name] for name in ("at", "asked", "details")})
            return
        try:
            if self.held:
                raise UserError(self.held)
            self._grant(message)
        except Exception as problem:
            self.error = str(problem) if isinstance(problem, UserError) else f"{type(problem).__name__}: {problem}"
        self.done = max(self.done, int(message.get("n", 0)))

    def _grant(self, message: dict[str, Any]) -> None:
        match message.get("do"):
            case "run":
                self.click_run()
            case "step":
                self.click_step(message.get("action"))
            case "switch":
                self.click_switch(message["name"])
            case "branch":
                self.click_branch(message.get("name", ""), message.get("at"))
            case "without":
                self.click_without(message["at"])
            case "compare":
                self.click_compare(message["name"])

    # ---------------------------------------------------------------- where no widget is shown

    def state(self) -> dict[str, Any]:
        """The folded state at the record that is shown."""
        if self.at >= len(self.records) - 1:
            return self._history.state
        return self._history.at(self.at)

    def line(self) -> str:
        """The state in one line, and where in the journal it is."""
        count = len(self.records)
        return f"{text.summary(self.state(), self.brokers)}; record {min(self.at + 1, count)} of {count}"

    def headline(self) -> str:
        """The sentence of the record that is shown; of a run at rest the last decision, as in `sceneAt` in viewer.js."""
        if not self.records:
            return ""
        shown = self.records[min(self.at, len(self.records) - 1)]
        goes_on = shown is not self.records[-1] or any(sort == "routine" for _, _, sort in self.actions)
        decided = (row["decides"] for row in reversed(self.records) if "decides" in row)
        said: str = shown["say"]
        return said if goes_on or shown["weight"] > 1 else next(decided, said)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget, and for where none is shown a still picture and one line of text."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle or ({}, {})
        svg = picture.svg(self.state(), self.brokers, self.title, self.headline())
        still = {"image/svg+xml": svg, "text/plain": self.line()}
        return data | still, metadata
