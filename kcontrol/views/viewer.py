"""The viewer: a widget that steps through a journal, and offers the next actions of a cluster.

Traits that are sent to the browser (all in JSON's types):

* `records`: rows as `record_rows.py` makes them. All rows are sent when the widget is made or a page is reloaded. Later rows are
  sent as a message `{"append": rows, "from": index}`, after which the browser shows the last record; `count` is the number of
  rows.
* `brokers`, `release`, `world`, `title`: the run that is shown; `clock`: the clock of its times, see `clock.py`. `live`: whether
  the viewer has a cluster to step.
* `at`: the index of the record that is shown. `asked`: the id of the record whose causes are shown, or an empty list.
  `details`: whether records of importance 0 are listed and stepped through.
* `actions`: the next actions, as [action, label, "routine" or "fault"]; `held`: the reason why no action is possible yet, or "".
* `branches`: the names of the runs in the switcher, `branch` the name of the run that is shown; empty without branches.
* `other`: the rows of a run that is shown beside this run, under the name `other_name`; `parted` is the index of the first
  record that differs, or -1.
* `strips`, `other_strips`: the groups of this run and of the run beside it, as `moving_strip.py` makes them.
* `busy`, `error`: whether an action is in progress, and the error of the last action; `done`: the number of the last message that
  was executed.

Messages from the browser; `n` is the message's number: `{"do": "step", "n": 3, "action": [...]}` (without an action: the next
routine action), `{"do": "run", "n": 4}`, `{"do": "switch", "name": "main"}`, `{"do": "branch", "name": "", "at": 7}` (a branch
after the record with this index; "": the first free name), `{"do": "without", "at": 7}` (the run without the action that caused
this record, beside this run), `{"do": "compare", "name": "main"}` (that run beside this run), `{"do": "records", "from": 120}`
for rows that are missing,
`{"do": "show", "at": 7, "asked": [], "details": false}` for the record that is shown.
Everything else happens in the browser, without a kernel.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import anywidget
import traitlets

from kcontrol.core.errors import UserError
from kcontrol.journal import journal
from kcontrol.journal.journal import Record, RecordId, to_json
from kcontrol.journal.state_history import History
from kcontrol.views import bundle, compared_run, still_picture, text
from kcontrol.views.compared_run import ComparedRun
from kcontrol.views.explanations import decided
from kcontrol.views.moving_strip import strips, strips_of
from kcontrol.views.record_rows import Rows, about_run, rows

BATCH_SIZE = 5_000  # rows in one message
CLICKS = ("run", "step", "switch", "branch", "without", "compare")  # the methods whose names begin with `click_`


class Stepper(Protocol):
    """The cluster that a viewer steps: `records`, its growing journal, its next `actions`, and the methods `step` and `run`."""

    @property
    def records(self) -> Sequence[Record]: ...
    def actions(self) -> Sequence[Any]:
        """Return the possible actions, tuples with an attribute `routine`: True if the cluster performs the action by itself."""
        ...

    def step(self, action: Any = None) -> object:
        """None: the next action that the cluster performs by itself. Raises UserError for an impossible action."""
        ...

    def run(self) -> object: ...


@runtime_checkable
class Branching(Protocol):
    """A cluster whose run has branches: copies of the run up to a record, which then go on separately.

    `branches` maps the name of each run to its cluster, a Stepper; the original run is the first.
    """

    @property
    def branches(self) -> Mapping[str, Any]: ...
    def branch(self, name: str, at: Any = None) -> Any: ...
    def without(self, record: Any) -> Any: ...
    def compare(self, one: Any, other: Any = None) -> Any: ...


class Viewer(anywidget.AnyWidget):
    """The viewer widget: `Viewer(stepper)` shows a cluster and steps it; `Viewer(records=...)` only shows a journal.

    Each button has a method with equal effect; a method that goes to an unknown record raises UserError.
    """

    _esm = bundle.script()
    _css = bundle.style()

    # The top of this file describes each trait.
    # The rows of the journal: one dict per journal record, as `record_rows.py` makes it.
    records: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    # The number of rows.
    count = traitlets.Int(0).tag(sync=True)
    # The ids of the brokers of the run that is shown.
    brokers: traitlets.List[int] = traitlets.List().tag(sync=True)
    # The run's release of Kafka, such as "2.8".
    release = traitlets.Unicode("").tag(sync=True)
    # How the run was made, such as "simulated" or "recorded".
    world = traitlets.Unicode("").tag(sync=True)
    # The clock of the run's times: "virtual", "wall" or "none".
    clock = traitlets.Unicode("virtual").tag(sync=True)
    # The run's title.
    title = traitlets.Unicode("").tag(sync=True)
    # The index of the record that is shown.
    at = traitlets.Int(0).tag(sync=True, echo_update=False)
    # The id of the record whose causes are shown, [] for none.
    asked: traitlets.List[int] = traitlets.List().tag(sync=True, echo_update=False)
    # Whether records of importance 0 are listed.
    details = traitlets.Bool(False).tag(sync=True, echo_update=False)
    # The next actions, as [action, label, "routine" or "fault"]; the cluster performs a routine action by itself.
    actions: traitlets.List[list[Any]] = traitlets.List().tag(sync=True)
    # Whether the viewer has a cluster to step.
    live = traitlets.Bool(False).tag(sync=True)
    # The names of the runs between which the viewer switches: branches of one run.
    branches: traitlets.List[str] = traitlets.List().tag(sync=True)
    # The name of the run that is shown.
    branch = traitlets.Unicode("").tag(sync=True)
    # The rows of a second run that is shown beside this run.
    other: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    # The name of the second run.
    other_name = traitlets.Unicode("").tag(sync=True)
    # The index of the first record that differs between both runs, or -1.
    parted = traitlets.Int(-1).tag(sync=True)
    # The pictures of this run's consumer groups, as `MovingStrip.to_json` makes them.
    strips: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    # The pictures of the second run's consumer groups.
    other_strips: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)
    # Why no action is possible yet, or "".
    held = traitlets.Unicode("").tag(sync=True)
    # Whether an action is in progress.
    busy = traitlets.Bool(False).tag(sync=True)
    # The error of the last action, or "".
    error = traitlets.Unicode("").tag(sync=True)
    # The number of the browser's last message that was executed.
    done = traitlets.Int(0).tag(sync=True)

    def __init__(
        self,
        stepper: Stepper | None = None,
        *,
        records: Iterable[Record] = (),
        title: str = "",
        beside: ComparedRun | None = None,
    ) -> None:
        # `records` is the journal that is shown without a `stepper`, `beside` a second run that is shown too.
        self._stepper, self._held = stepper, list(records)
        made = self._made_anew()
        place = {"records": made, "count": len(made), "at": max(0, len(made) - 1), "actions": self._offered()}
        place["strips"] = strips(self._source, self._history.state)
        self._strips = compared_run.strips_of_both(self._held, title, beside)
        super().__init__(title=title, live=stepper is not None, **place, **about_run(made), **compared_run.traits(beside))
        self.refresh_branches()
        self.on_msg(self._on_message)

    # ---------------------------------------------------------------- the run that is shown

    @property
    def _source(self) -> Sequence[Record]:
        return self._stepper.records if self._stepper else self._held

    def refresh(self) -> None:
        """Add the new journal records, and show the last; to be called after the cluster was stepped without the viewer."""
        source = self._source
        known = len(self.records)
        if known > len(source) or (known and list(source[known - 1].id) != self.records[-1]["id"]):
            self._start_anew()
        else:
            self._send_rows(known, self._append())
        with self.hold_sync():
            self.count, self.at = len(self.records), max(0, len(self.records) - 1)
            self.actions = self._offered()
            self.strips = strips(source, self._history.state)
        self.refresh_branches()

    def show(self, stepper: Stepper) -> None:
        """Show the journal of `stepper`, a cluster, in place of the present run; the viewer then steps this cluster."""
        self._stepper, self.live = stepper, True
        self._start_anew()
        self.refresh()

    # ---------------------------------------------------------------- branches

    @property
    def _family(self) -> Mapping[str, Any]:
        stepper: object = self._stepper
        return stepper.branches if isinstance(stepper, Branching) else {}

    def show_new_records(self, stepper: object) -> None:
        """If this viewer shows the run of `stepper`, alone or beside another run."""
        if stepper is self._stepper:
            self.refresh()
        elif self.other_name and self._family.get(self.other_name) is stepper:
            self.refresh_branches()

    def refresh_branches(self) -> None:
        """The records of a branch that is shown beside this run follow."""
        family = self._family
        own = next((name for name, stepper in family.items() if stepper is self._stepper), "")
        with self.hold_sync():
            self.branches, self.branch = list(family), own
            if self.other_name in family:
                self._compare_with(self.other_name)

    def _compare_with(self, name: str) -> None:
        found = self._family[name].records
        common = min(len(found), len(self.records))
        if self.other_name != name or not 0 <= self.parted < common:
            self.parted = self._family[self.branch].compare(self.branch, name).parted
        if self.other_name != name or len(self.other) != len(found):
            self.other = rows(found)
            self.other_strips = strips_of(found)
        self.other_name = name

    def click_switch(self, name: str) -> None:
        """Show a branch in place of this run. Raises UserError for an unknown name."""
        chosen = self._branch_named(name)
        self.click_compare("")
        self.title = "" if name == self.branches[0] else name
        self.show(chosen)

    def click_branch(self, name: str = "", at: int | None = None) -> None:
        """Branch at the shown record, or at index `at`, and show the branch. Raises UserError for a used name."""
        stepper = self._branching()
        here = self.at if at is None else at
        # The first free name, if none is given.
        numbers = (f"branch {n}" for n in range(1, len(self.branches) + 2))
        chosen = name or next(free for free in numbers if free not in self.branches)
        stepper.branch(chosen, None if here >= len(self.records) - 1 else here)
        self.refresh_branches()
        self.click_switch(chosen)

    def click_without(self, at: int | str | Sequence[int] | None = None) -> None:
        """Show the run without the act that caused the record `at` (None: the shown one) beside this run. Raises UserError."""
        found = self._branching().without(self.at if at is None else self._index(at))
        self.refresh_branches()
        self.click_compare(found.names[1])

    def click_compare(self, name: str) -> None:
        """Show a branch beside this run, "" this run alone. Raises UserError for an unknown name."""
        if name:
            self._branch_named(name)
        with self.hold_sync():
            if name:
                self._compare_with(name)
            else:
                self.other, self.other_name, self.parted, self.other_strips = [], "", -1, []

    def _branching(self) -> Branching:
        stepper: object = self._stepper
        if not isinstance(stepper, Branching):
            raise UserError("This viewer shows a journal, which has no branches: use the viewer of a lab.")
        return stepper

    def _branch_named(self, name: str) -> Any:
        self._branching()
        if name not in self._family:
            raise UserError(f"There is no branch {name!r}; the branches are {text.listed(self._family, 30)}.")
        return self._family[name]

    # ---------------------------------------------------------------- rows

    def _made_anew(self) -> list[dict[str, Any]]:
        """Return the viewer's rows (one dict per journal record) of all records, computed again from the first record on."""
        self._rows = Rows()
        self._history = History(self._source, follow=self._rows.add)
        return self._newly_made()

    def _newly_made(self) -> list[dict[str, Any]]:
        """Return the viewer's rows (one dict per journal record) of the records that were added since the last call."""
        self._history.take_in()
        made, self._rows.made = self._rows.made, []
        return made

    def _append(self) -> list[dict[str, Any]]:
        made = self._newly_made()
        self.records.extend(made)  # in place, because a new list would be sent as a whole
        return made

    def _start_anew(self) -> None:
        made = self._made_anew()
        with self.hold_sync():
            self.records, self.asked = made, []
            for name, value in about_run(made).items():
                setattr(self, name, value)

    def _send_rows(self, start: int, rows: Sequence[dict[str, Any]]) -> None:
        for first in range(0, len(rows), BATCH_SIZE):
            self.send({"append": rows[first : first + BATCH_SIZE], "from": start + first})

    def _offered(self) -> list[list[Any]]:
        """Return [action, label, "routine" or "fault"] for each possible action; [] if the viewer only shows a journal."""
        if self._stepper is None:
            return []
        # A routine action is one that the cluster performs by itself.
        state, actions = self._history.state, self._stepper.actions()
        return [[to_json(a), text.action_label(a, state), "routine" if a.routine else "fault"] for a in actions]

    # ---------------------------------------------------------------- navigation in the journal

    def to(self, record: int | str | Sequence[int]) -> None:
        """Show a journal record, by its index (negative from the end) or by its id (`"3.1.41"` or three numbers)."""
        self.at = self._index(record)

    def back(self) -> None:
        """Show the previous record that the viewer lists: if `details` is False, records of importance 0 are not listed."""
        self.at = self._step_by_importance(self._listed(), -1)

    def forward(self) -> None:
        """Show the next record that the viewer lists: if `details` is False, records of importance 0 are not listed."""
        self.at = self._step_by_importance(self._listed(), 1)

    def previous_fault(self) -> None:
        """A fault is an act from outside, such as a kill, or a loss of log records."""
        self.at = self._step_by_importance(self._important(2), -1)

    def next_fault(self) -> None:
        """A fault is an act from outside, such as a kill, or a loss of log records."""
        self.at = self._step_by_importance(self._important(2), 1)

    def why(self, record: int | str | Sequence[int] | None = None) -> list[str]:
        """The chain of causes as lines, the record first; None closes the chain."""
        if record is None:
            self.asked = []
            return []
        row = self.records[self._index(record)]
        self.asked = row["id"]
        chain = [record.to_json() for record in journal.why(self._source, RecordId(*row["id"]))]
        return [" · ".join([*text.lines([record]), *decided(record, self.release)]) for record in chain]

    def _listed(self) -> list[int]:
        return self._important(0 if self.details else 1)

    def _important(self, least: int) -> list[int]:
        return [index for index, row in enumerate(self.records) if row["weight"] >= least]

    def _step_by_importance(self, indices: list[int], direction: int) -> int:
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
        raise UserError(f"There is no record {record!r}: give an index below {len(self.records)}, or the id of a record.")

    # ---------------------------------------------------------------- actions

    def click_step(self, action: Sequence[Any] | None = None) -> None:
        """None: the cluster's next action. Raises UserError if the action is not possible, or without a cluster."""
        self._do(lambda stepper: stepper.step(_as_tuples(action)))

    def click_run(self) -> None:
        """Perform what the cluster does by itself until it rests; the journal's last record is then shown."""
        self._do(lambda stepper: stepper.run())

    def _do(self, act: Callable[[Stepper], object]) -> None:
        if self._stepper is None:
            raise UserError("This viewer shows a journal without a cluster, which cannot be stepped: use the viewer of a lab.")
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
        """Execute a message of the browser, such as {"do": "step", "n": 3}; an error is shown in the widget."""
        # The top of this file lists the messages.
        command = message.get("do")
        if command == "records":
            start = int(message["from"])
            self._send_rows(start, self.records[start:])
            return
        if command == "show":
            self.set_state({name: message[name] for name in ("at", "asked", "details")})
            return
        try:
            if self.held:
                # No action is possible now.
                raise UserError(self.held)
            self._execute(**message)
        except Exception as problem:
            self.error = str(problem) if isinstance(problem, UserError) else f"{type(problem).__name__}: {problem}"
        self.done = max(self.done, int(message.get("n", 0)))

    def _execute(self, do: str = "", n: int = 0, **given: Any) -> None:
        if do in CLICKS:
            getattr(self, f"click_{do}")(**given)

    # ---------------------------------------------------------------- frontends that show no widgets

    def state(self) -> dict[str, Any]:
        """Return the state of the cluster, as `journal.fold` computes it, after the journal record that is shown."""
        if self.at >= len(self.records) - 1:
            return self._history.state
        return self._history.at(self.at)

    def line(self) -> str:
        """The state and place of the record that is shown: "3 of 3 brokers, ...; record 7 of 120"."""
        count = len(self.records)
        return f"{text.summary(self.state(), self.brokers)}; record {min(self.at + 1, count)} of {count}"

    def headline(self) -> str:
        """At the end of a run the last decision stands in place of an unimportant record."""
        if not self.records:
            return ""
        shown = self.records[min(self.at, len(self.records) - 1)]
        goes_on = shown is not self.records[-1] or any(sort == "routine" for _, _, sort in self.actions)
        decided = (row["decides"] for row in reversed(self.records) if "decides" in row)
        said: str = shown["say"]
        return said if goes_on or shown["weight"] > 1 else next(decided, said)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return (data by MIME type, metadata): the widget, and a still picture and text for frontends that show no widgets."""
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle or ({}, {})
        state = self.state()
        svg = still_picture.svg(state, self.brokers, self.title, self.headline(), self.release)
        lines = [self.line(), *still_picture.group_lines(state, self.release)]
        # With a second run the picture is that of both runs' groups.
        if self.other_name and self._strips:
            svg, lines = self._strips.svg(), [*lines, *self._strips.lines()]
        still = {"image/svg+xml": svg, "text/plain": "\n".join(lines)}
        return data | still, metadata


def _as_tuples(action: Any) -> Any:
    """Return an action from the browser with tuples in place of lists, since an action in JSON has no tuples."""
    return tuple(map(_as_tuples, action)) if isinstance(action, list) else action
