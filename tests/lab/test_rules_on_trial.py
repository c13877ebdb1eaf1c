"""What chapters look at: candidates, offline windows, the steps of a handler, rules on trial."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kcontrol import Lab, rules
from kcontrol.controller import leader_election
from kcontrol.core.errors import UserError
from kcontrol.lab.run import Run


@pytest.fixture
def four(opened: Callable[..., Lab]) -> Lab:
    """Broker 4 rules; t-0 is assigned to 1, 2 and 3."""
    return opened([4, 1, 2, 3], topics={"t": [[1, 2, 3]]})


def verdicts(lab: Lab) -> list[str]:
    return list(lab.tables.election_candidates("t-0").table.verdict)


def test_candidates_are_judged_as_the_controller_then_elects(four: Lab) -> None:
    """After the leader's death the candidate with the verdict `next` leads, for any order of the ISR."""
    four.kill(2).run().start(2).run()
    assert four.partitions().isr["t-0"] == [1, 3, 2]
    assert verdicts(four) == ["leads", "next", "in sync"]
    four.kill(1).run()
    assert four.partitions().leader["t-0"] == 2 and verdicts(four) == ["dead", "leads", "next"]


def test_a_candidate_outside_the_isr(four: Lab) -> None:
    """A replica outside the ISR may lead only if the setting of the topic allows unclean elections."""
    four.kill(2).run().kill(3).run().kill(1).run().start(3).run()
    assert verdicts(four) == ["dead", "dead", "not in sync"]
    four.zk.set("/config/topics/t", '{"version":1,"config":{"unclean.leader.election.enable":"true"}}')
    assert verdicts(four) == ["dead", "dead", "next, unclean"]
    four.start(5).run()
    assert four.partitions().leader["t-0"] == 3


def test_a_broker_s_own_setting_counts(opened: Callable[..., Lab]) -> None:
    """The lab knows how its brokers are configured; a journal alone has the release's default."""
    lab = opened([4, 1, 2], topics={"t": [[1, 2]]}, config={"unclean.leader.election.enable": True})
    lab.shrink_isr("t-0", 2).run(until=lambda lab: lab.partitions().isr["t-0"] == [1])
    assert verdicts(lab) == ["leads", "next, unclean"]
    assert list(Run(lab.records).tables.election_candidates("t-0").table.verdict) == ["leads", "not in sync"]


def test_the_strip_is_text_and_picture_and_escapes(opened: Callable[..., Lab]) -> None:
    """A topic's name is text in the picture, and the text has one line for each replica."""
    lab = opened(3).step(("create_topic", "<img src=x onerror=alert(1)>", [[1, 2, 3]])).run()
    strip = lab.tables.election_candidates("<img src=x onerror=alert(1)>-0")
    assert "<img" not in strip._repr_svg_() and "&lt;img" in strip._repr_svg_()
    assert repr(strip).splitlines()[1:] == ["  broker 1: leads", "  broker 2: next", "  broker 3: in sync"]


def test_a_partition_that_is_not_there(four: Lab) -> None:
    """The sentence lists those that there are."""
    with pytest.raises(UserError, match=r"There is no partition 'x'; the partitions are t-0"):
        four.tables.election_candidates("x")
    with pytest.raises(UserError, match=r"the partitions are t-0"):
        four.elect_preferred("t-1")


def test_an_offline_window_lasts_from_death_to_a_living_leader(four: Lab) -> None:
    """A window begins with the kill, not with the end of the session, and is over with the record of the next leader."""
    assert len(four.tables.offline_windows()) == 0
    four.kill(1)
    died = four.records[-1].at_ms
    assert four.tables.offline_windows().end_ms.isna().all()
    four.run()
    elected = next(
        r for r in four.records if r.kind == "change" and "leader 2" in str(four.rewind(r.id).tables.election_candidates("t-0"))
    )
    (row,) = four.tables.offline_windows().itertuples()
    assert (row.partition, row.led_before, row.led_after, row.duration_ms) == ("t-0", 1, 2, elected.at_ms - died)


def test_a_frozen_leader_is_no_leader(four: Lab) -> None:
    """A partition whose leader is frozen has an offline window, which ends when the leader is thawed."""
    four.freeze(1)
    assert len(four.tables.offline_windows()) == 1 and four.tables.offline_windows().end_ms.isna().all()
    four.thaw(1).run()
    assert list(four.tables.offline_windows().led_after) == [1]


def test_who_starts_again_leads_only_once_it_is_named_again(four: Lab) -> None:
    """A leader that died and is back before its death was seen leads nothing until the controller names a leader anew."""
    four.freeze(4).kill(1).expire_session(1).start(1).run()
    assert four.partitions().leader["t-0"] == 1 and four.tables.offline_windows().end_ms.isna().all()
    four.thaw(4).run()
    assert list(four.tables.offline_windows().led_after) == [2]


def test_an_offline_window_ends_when_a_restarted_broker_takes_over_leader_and_isr(opened: Callable[..., Lab]) -> None:
    """Up to 2.1 the controller does not notice a fast restart; the next controller's LeaderAndIsr makes the broker lead again."""
    # The row ends when the broker takes the request over, although no state znode is written.
    lab = opened([4, 1, 2, 3], topics={"t": [[1, 2, 3]]}, release="1.1")
    lab.freeze(4).kill(1).expire_session(1).start(1).run().thaw(4).run()
    assert lab.tables.offline_windows().end_ms.isna().all()
    before = len(lab.records)
    lab.zk.delete("/controller").run()
    applied = next(
        r for r in lab.records[before:] if r.kind == "apply_request" and r.id.node == 1 and r.fields["field"] == "hosted"
    )
    assert not lab.tables.offline_windows().end_ms.isna().any()
    [row] = lab.tables.offline_windows().itertuples()
    assert (row.end_ms, row.led_before, row.led_after) == (applied.at_ms, 1, 1)


def test_a_controlled_shutdown_leaves_no_offline_window(four: Lab) -> None:
    """The controller elects other leaders for the partitions of a broker in controlled shutdown before the broker ends."""
    four.terminate(1).run()
    assert four.partitions().leader["t-0"] == 2 and len(four.tables.offline_windows()) == 0


def test_what_a_handler_did(four: Lab) -> None:
    """Reads, transitions and requests of one event are listed in order, and nothing of another event."""
    four.kill(1).run()
    done = four.tables.handler_steps("BrokerChange")
    assert list(done.kind) == ["read", "read", "change", "read", "change", "send", "read", "change", "send"]
    assert done.what.iloc[2] == "Broker 4 moves t-0 from Online to Offline."
    with pytest.raises(UserError, match=r"No broker has handled 'Expire' in this run; the handled events are: .*BrokerChange"):
        four.tables.handler_steps("Expire")


def test_what_a_handler_learnt_is_shown_where_it_is_asked_for(four: Lab) -> None:
    """A resignation is all memory: without it one line is left."""
    four.expire_session(4).run()
    short, long = four.tables.handler_steps("Expire", 4), four.tables.handler_steps("Expire", 4, memory=True)
    assert list(short.kind) == ["cancel_timer"] and set(long.kind) == {"cancel_timer", "update"}
    assert long.what.iloc[0] == "Broker 4's controller context now has active controller id -1."


def test_long_texts_are_shown_whole(four: Lab) -> None:
    """Neither the text nor the HTML of a table of steps cuts its sentences."""
    four.kill(1).run()
    shown = four.tables.handler_steps("BrokerChange")[["kind", "what"]]
    assert max(map(len, shown.what)) > 60
    html = shown._repr_html_().replace("<wbr>", "")  # where a browser may break a name
    assert all(what in repr(shown) and what in html for what in shown.what)


def test_the_handler_that_only_looks_is_passed_over(four: Lab) -> None:
    """A preferred election ends by looking once more for the znode; what is shown is the election."""
    four.kill(1).run().start(1).run()
    assert four.partitions().leader["t-0"] == 2
    four.elect_preferred("t-0").run()
    assert four.partitions().leader["t-0"] == 1
    assert set(four.tables.handler_steps("ReplicaLeaderElection").kind) == {"read", "change", "send", "write"}


def test_every_election_has_a_row(four: Lab) -> None:
    """The table has the strategies of the controller, and the order where releases differ."""
    assert list(rules.elections().index) == list(leader_election.STRATEGIES)
    assert rules.elections().order["offline"] == "ISR since 0.8.0; AR since 0.8.2"


def test_rules_on_trial(four: Lab) -> None:
    """Under the same deaths a rule that elects any live replica has less offline time and unclean elections; Kafka's has none."""
    candidates = {"Kafka": None, "any live": lambda assignment, isr, live: next((b for b in assignment if b in live), None)}
    found = rules.trials(candidates, runs=4)
    assert list(found.index) == ["Kafka", "any live"] and set(found.runs) == {4}
    assert found.unclean["Kafka"] == 0 < found.unclean["any live"]
    assert found.offline_ms["any live"] < found.offline_ms["Kafka"]
    assert found.equals(rules.trials(candidates, runs=4))


def test_a_rule_that_fails_is_named(four: Lab) -> None:
    """The sentence says which rule has failed, and how."""
    with pytest.raises(UserError, match=r"The trial of rule 'bad' failed: .*IndexError"):
        rules.trials({"bad": lambda assignment, isr, live: assignment[7]}, runs=1)


def test_the_controller_s_own_text(four: Lab) -> None:
    """A rule is shown as it is written; for a name that means nothing the sentence lists what there is."""
    assert rules.source("leader_election.offline").startswith("def offline(c: ElectionInput)")
    with pytest.raises(UserError, match=r"no module 'elections'; its modules are .*election"):
        rules.source("elections")
    with pytest.raises(UserError, match=r"no function 'x' in leader_election; its functions are offline"):
        rules.source("leader_election.x")


def test_a_function_that_a_module_keeps_to_itself() -> None:
    """`source` shows a private function by its name, and does not list it in a refusal."""
    assert rules.source("requested_elections._can_lead").startswith("def _can_lead(")
    with pytest.raises(UserError) as problem:
        rules.source("requested_elections.nothing")
    assert "imbalanced_by_broker" in str(problem.value) and "_can_lead," not in str(problem.value)
