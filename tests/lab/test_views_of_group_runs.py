"""Every public way to look at a run works on runs with consumer groups, and shows the groups under the names of the release."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kcontrol import Lab
from kcontrol.core.errors import UserError
from kcontrol.journal.journal import to_json
from kcontrol.lab.run import Run
from kcontrol.views.html_page import write_html
from tests.lab.group_runs import GROUP, RECORDED, RUNS, played, recorded, stable
from tests.lab.support import refusal


def texts(svg: str) -> str:
    return "\n".join(text.text or "" for text in ElementTree.fromstring(svg).iter() if text.tag.endswith("text"))


def the_journal(run: Lab, folder: Path) -> None:
    assert run.journal()["what"].str.match(r"^[A-Z].*[.…]$").all() and len(run.journal()) == len(run.records)


def kafkas_words(run: Lab, folder: Path) -> None:
    """The lines of Kafka's own logs are there, those of the controller and those of the coordinator about the group."""
    lines = run.journal(words="kafka")["log"]
    assert lines.str.contains("KafkaController").any() and lines.str.contains(f"GroupCoordinator.*{GROUP}").any()


def the_picture(run: Lab, folder: Path) -> None:
    """The text of the picture, and the text beside it, name every member, the state of its group, and its partitions."""
    bundle = run._repr_mimebundle_()[0]
    for shown in (texts(bundle["image/svg+xml"]), bundle["text/plain"]):
        lines = shown.splitlines()
        for member in run.tables.members().reset_index().itertuples():
            assert any(
                line.startswith(f"group {member.group_id}: {member.state}, generation {member.generation}") for line in lines
            )
            (line,) = (line for line in lines if line.startswith(member.member_id))
            assert line.endswith(f": {', '.join(member.partitions) or 'no partition'}")
            assert ("JoinGroup" in line) == (member.waits_for == "join") and (", leader" in line) == member.leads


def the_page(run: Lab, folder: Path) -> None:
    """The page has the records of the group, and in its strip the lines of every member."""
    write_html(run.records, folder / "run.html", "A run")
    page = (folder / "run.html").read_text(encoding="utf-8")
    assert "moves group billing from" in page and all(f'"{line}"' in page for line in run.group_strip().lines())


def the_strip(run: Lab, folder: Path) -> None:
    """The strip has the state of the group, and the text beside it a line for each member with its partitions; so has the SVG."""
    strip, members = run.group_strip(), run.tables.members()
    shown, held = texts(strip.svg()), run.state["nodes"][str(members["coordinator"].iloc[0])]["group"]["groups"][GROUP]["members"]
    assert len(members) == len(held) > 0
    for member in members.itertuples():
        name = held[member.member_id]["instance_id"] or member.client_id
        condition = "JoinGroup is parked" if member.waits_for == "join" else f"in generation {member.generation}"
        owned = ", ".join(member.partitions) or "no partition"
        assert any(re.search(rf"^  \w {name}( \(2\))?: {condition}; {owned}(;|$)", line) for line in strip.lines())
        assert f"{member.state}, generation {member.generation}" in strip.lines()[0] == shown.splitlines()[0]
        assert name in shown and set(member.partitions) <= set(shown.splitlines())


def every_why(run: Lab, folder: Path) -> None:
    """Each subject, and the last record of each kind, has its chain of causes."""
    subjects: Iterable[str] = ("leader of t-0", "isr of t-0", "controller", "/controller")
    owners = (f"owner of {partition} in billing" for partitions in run.tables.members()["partitions"] for partition in partitions)
    of_groups = ("generation of billing", "leader of group billing", *owners, "offset of billing in t-0")
    for what in (*subjects, *of_groups, *({record.kind: str(record.id) for record in run.records}.values())):
        assert run.why(what).outline()


def compare(run: Lab, folder: Path) -> None:
    """The run differs from its own first half where the half ends."""
    half = run.rewind(len(run.records) // 2)
    assert run.compare(half).at == len(half.records)
    assert run.compare(half)._repr_html_()


def opened_again(run: Lab, folder: Path) -> None:
    run.save(folder / "run.jsonl")
    again = Lab.open(folder / "run.jsonl")
    assert [record.to_json() for record in again.records] == [record.to_json() for record in run.records]
    assert to_json(again.state) == to_json(run.state) and again.tables.members().equals(run.tables.members())


def every_table(run: Lab, folder: Path) -> None:
    """Each table about groups has rows of the group; a Stable group has no waiting member."""
    tables = run.tables
    for found in (tables.members(), tables.offsets(), tables.assignment(), tables.consumer_groups()):
        assert not found.empty and set(found.index.get_level_values("group_id")) == {GROUP}
    assert set(tables.rebalances()["group_id"]) == {GROUP}
    assert GROUP in set(tables.timers()["group_id"].dropna()) and not tables.metrics().empty and not tables.reactions().empty
    assert tables.parked().empty or set(tables.members()["state"]) != {"Stable"}


LOOKS = (the_journal, kafkas_words, the_picture, the_strip, the_page, every_why, compare, opened_again, every_table)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", RUNS)
def test_every_look_at_every_run(name: str, look: Callable[[Run, Path], None], tmp_path: Path) -> None:
    """None of the public ways to look at a run fails on a run of a group, and each shows the group."""
    look(played(name), tmp_path)


def coordinators_words(run: Run, folder: Path) -> None:
    assert run.journal(words="kafka")["log"].str.contains("GroupCoordinator").any()


def its_page(run: Run, folder: Path) -> None:
    """The page has the records of the group, with the mark of what is inferred."""
    write_html(run.records, folder / "run.html", "A recording")
    page = (folder / "run.html").read_text(encoding="utf-8")
    assert "(inferred)." in page and "(its time is inferred)." in page and run.records[0].fields["group"] in page


def why_of_groups(run: Run, folder: Path) -> None:
    """Each subject of the group that the recording has, and the last record of each kind, has its chain of causes."""
    group, orders = run.records[0].fields["group"], "orders-0"
    committed = any(r.kind == "update" and r.fields["field"] == "offsets" for r in run.records)
    offset = (f"offset of {group} in {orders}",) if committed else ()
    subjects = (f"generation of {group}", f"leader of group {group}", f"owner of {orders} in {group}", *offset)
    for what in (*subjects, *({record.kind: str(record.id) for record in run.records}.values())):
        assert run.why(what).outline()


def beside_our_run(run: Run, folder: Path) -> None:
    """Our run of the requests has no difference."""
    found = run.compare(Lab.play(run, runs=None))
    assert str(found).startswith("No difference") and found._repr_html_()


def tables_of_groups(run: Run, folder: Path) -> None:
    """Each table about groups is there; the rebalances and the assignments name the recorded group."""
    tables, group = run.tables, run.records[0].fields["group"]
    assert set(tables.rebalances().group_id) == {group} and not tables.reactions().empty and not tables.metrics().empty
    for found in (tables.members(), tables.offsets(), tables.assignment(), tables.consumer_groups()):
        assert set(found.index.get_level_values("group_id")) <= {group}
    assert tables.parked().empty and set(tables.timers()["group_id"]) <= {group}


def its_strip(run: Run, folder: Path) -> None:
    """The strip has each member after the last record, by its instance id or else its client id, with its partitions."""
    lines, group = run.group_strip().lines(), run.records[0].fields["group"]
    for member in run.tables.members().itertuples():
        (node,) = run.state["nodes"].values()
        name = node["group"]["groups"][group]["members"][member.member_id]["instance_id"] or member.client_id
        assert any(f" {name}: " in line and ", ".join(member.partitions) in line for line in lines[1:])
    assert group in lines[0] and run.group_strip().svg().startswith("<svg")


RECORDED_LOOKS = (the_journal, coordinators_words, the_picture, its_page, why_of_groups, beside_our_run, opened_again,
                  tables_of_groups, its_strip)  # fmt: skip


@pytest.mark.parametrize("look", RECORDED_LOOKS)
@pytest.mark.parametrize("name", RECORDED)
def test_every_look_at_every_recording(name: str, look: Callable[[Run, Path], None], tmp_path: Path) -> None:
    """None of the public ways to look at a run fails on a recording of a real coordinator."""
    look(recorded(name), tmp_path)


def test_the_states_of_a_release() -> None:
    """0.9 says AwaitingSync and has no Empty; 2.8 says CompletingRebalance: in the members, the sentences and the diagram."""
    for release, shown, other in (("0.9", "AwaitingSync", "CompletingRebalance"), ("2.8", "CompletingRebalance", "AwaitingSync")):
        run = played(f"{release} leave")
        assert run.tables.members()["state"].unique().tolist() == [shown]
        for said in (run.diagram("group").outline(), "\n".join(run.journal()["what"]), run._repr_mimebundle_()[0]["text/plain"]):
            assert shown in said and other not in said
        assert f"{shown} 1" in run.diagram("group").outline()
        assert ("Empty" in run.diagram("group").source) == (release == "2.8")


def test_a_restarted_consumer_has_two_members() -> None:
    """Up to the end of its old session a restarted consumer of 0.9 is two members; a static one of 2.8 is one, with a new id."""
    twice, static = (played(name).tables.members() for name in ("0.9 new_id", "2.8 static_restart"))
    assert twice["client_id"].tolist() == ["anna", "bert", "bert"] and twice["member_id"].is_unique
    assert static["client_id"].tolist() == ["anna", "bert"] and static["state"].tolist() == ["Stable", "Stable"]
    assert static["partitions"].tolist() == [["t-0", "t-1"], ["t-2"]] and static["generation"].tolist() == [1, 1]


def test_an_answer_to_a_process_that_has_ended(opened: Callable[..., Lab]) -> None:
    """The answer to a request of a consumer's former process does not reach the restarted one."""
    lab = stable("0.9")
    lab.group.join("cleo").run().group.restart("cleo")
    before = deepcopy(lab.state["consumers"]["cleo"])
    lab.group.leave("anna").run().group.leave("bert").run()  # now the JoinGroup of cleo's former process is answered
    assert lab.tables.members()["client_id"].tolist() == ["cleo"]
    assert lab.state["consumers"]["cleo"] == before and not before["member_id"]


def test_max_poll_interval() -> None:
    """A dynamic member of 2.8 leaves when it polls too late; a static one sends nothing; 0.9 has no such setting."""
    lab = stable("2.8")
    lab.group.expire_poll_interval("bert").run()
    assert lab.tables.members()["client_id"].tolist() == ["anna"] and not lab.state["consumers"]["bert"]["member_id"]
    static = played("2.8 static_restart").branch()
    requests = static.state["consumers"]["anna"]["requests"]
    static.group.expire_poll_interval("anna").run()
    assert static.tables.members()["client_id"].tolist() == ["anna", "bert"]
    assert static.state["consumers"]["anna"]["requests"] == requests and not static.state["consumers"]["anna"]["member_id"]
    for broken, name, says in ((stable("0.9"), "anna", "came in 0.10.1"), (lab, "cleo", "let it join first")):
        before = len(broken.records)
        with pytest.raises(UserError) as problem:
            broken.group.expire_poll_interval(name)
        assert says in refusal(problem) and len(broken.records) == before


@pytest.mark.parametrize(
    ("release", "consumer", "says"),
    [
        ("2.8", {"group.id": "g", "boo": "b"}, "group.instance.id"),
        ("2.8", {"group.instance.id": "a"}, "group.id"),
        ("2.8", {"group.id": "g", "group.instance.id": 7}, "must be text"),
        ("2.8", {"group.id": "g", "group.instance.id": ""}, "1 to 249 characters"),
        ("2.8", {"group.id": "g", "group.instance.id": "a/b"}, "1 to 249 characters"),
        ("2.8", {"group.id": "g", "group.instance.id": "x" * 250}, "1 to 249 characters"),
        ("2.8", {"group.id": "g", "group.instance.id": ".."}, "but not '.' or '..'"),
        ("2.8", {"group.id": "g", "max.poll.interval.ms": 0}, "from 1 to"),
        ("2.8", {"group.id": "g", "topics": ["t", "a b"]}, "a topic's name cannot contain ' '"),
        ("0.8.2", "g", "choose a release from 0.9 on"),
        ("0.9", {"group.id": "g", "group.instance.id": "a"}, "came in 2.3"),
    ],
)
def test_settings_of_a_consumer_that_are_none(opened: Callable[..., Lab], release: str, consumer: object, says: str) -> None:
    """Settings of a consumer that are unknown, missing, too early or illegal are refused in one sentence."""
    # Source: ConsumerConfig.java, JoinGroupRequest.validateGroupInstanceId, Topic.validate (2.8).
    with pytest.raises(UserError) as problem:
        opened(release=release, consumers={"a": consumer})
    assert says in refusal(problem)
