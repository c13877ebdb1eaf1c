"""Checks requests to create or alter a topic by the rules of kafka-topics.sh, and makes the action that creates the topic."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kcontrol.cluster import topic_tool
from kcontrol.core.errors import UserError
from kcontrol.core.znodes import BROKER_IDS, TOPICS, decode_topic_config, parent, topic_config_path, topic_path
from kcontrol.lab.support import requested_settings
from kcontrol.views import folded_state, text

Assignment = Sequence[Sequence[int]] | Mapping[int, Sequence[int]]
HOW = (
    'use create_topic("x", partitions=3, replication_factor=2), or list the replicas of each partition, as in '
    'create_topic("x", [[1, 2, 3], [2, 3, 1]])'
)


def request(
    state: folded_state.State,
    run: Mapping[str, Any],
    name: Any,
    assignment: Any,
    partitions: Any,
    replication_factor: Any,
    config: Any,
) -> tuple[Any, ...]:
    """The arguments of the action that creates a topic as Kafka's tool would: name, replicas by partition, and settings, if any.

    `run` has the fields of the journal's first record. Either `assignment` or both numbers must be None. Raises UserError
    otherwise, and if Kafka's tool refuses the topic.
    """
    release, topics = str(run["release"]), (path.removeprefix(f"{TOPICS}/") for path in state["znodes"] if parent(path) == TOPICS)
    with refusals("The topic cannot be created"):
        # Since 0.9 two names are too similar if they differ only in "." and "_".
        topic_tool.check_name(name, topics, release)
    if topic_path(name) in state["znodes"]:
        raise UserError(f"Topic {name} exists already: choose another name.")
    settings = requested_settings.topic_settings(release, config)
    counted = partitions is not None or replication_factor is not None
    if counted == (assignment is not None):
        both = "both numbers and a list of replicas are" if counted else "neither numbers nor a list of replicas are"
        raise UserError(f"The assignment of topic {name} is not clear, because {both} given: {HOW}.")
    # Of two numbers one may be missing, and is 1 then.
    counts = (1 if number is None else number for number in (partitions, replication_factor))
    replicas = drawn(state, run, name, *counts) if counted else checked(assignment)
    return (name, replicas, settings) if settings else (name, replicas)


def drawn(state: folded_state.State, run: Mapping[str, Any], name: str, partitions: Any, replication_factor: Any) -> Any:
    """Return the replicas of each partition as Kafka's tool assigns them to the registered brokers: ((1, 2), (2, 1)).

    Raises UserError for a number of partitions or a replication factor that Kafka's tool refuses.
    """
    registered = (path.removeprefix(f"{BROKER_IDS}/") for path in state["znodes"] if parent(path) == BROKER_IDS)
    brokers = sorted(int(broker) for broker in registered if broker.isdecimal())
    with refusals(f"Topic {name} cannot be created"):
        many, factor = topic_tool.check_counts(partitions, replication_factor, len(brokers), str(run["release"]))
    # The tool's two random numbers come from the run's seed and the topic's name.
    return topic_tool.draw_replicas(run["seed"], name, brokers, many, factor)


def altered_settings(state: folded_state.State, release: str, topic: str, config: Any) -> dict[str, str]:
    """Return all settings of a topic after the changes in `config`, in which None removes a setting.

    Raises UserError for an illegal setting of this release, and for a `config` that is no mapping.
    """
    stored = state["znodes"].get(topic_config_path(topic))
    before = decode_topic_config(stored[0].encode()) if stored else {}
    if not isinstance(config, Mapping):
        return requested_settings.topic_settings(release, config)
    wanted = {name: value for name, value in {**before, **config}.items() if value is not None}
    return requested_settings.topic_settings(release, wanted)


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Raise UserError in place of a TopicRefused error in the `with` block; its text is `what` and the reason.

    An example of `what` is "The topic cannot be created".
    """
    try:
        yield
    except topic_tool.TopicRefused as problem:
        raise UserError(f"{what}: {text.clean(str(problem), 600)}.") from None


def checked(assignment: Any) -> Assignment:
    """Return `assignment` unchanged if it has a list of broker ids for each partition: [[1, 2], [2, 3]] or {0: [1, 2]}.

    Raises UserError for any other value.
    """
    if not _is_assignment(assignment):
        raise UserError(
            f"{text.clean(repr(assignment), 200)} is not an assignment: give each partition a list of brokers, as in "
            "[[1, 2, 3], [2, 3, 1]]."
        )
    return assignment  # type: ignore[no-any-return]


def _is_assignment(value: Any) -> bool:
    if isinstance(value, Mapping) and not all(_is_number(partition) for partition in value):
        return False
    lists = list(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(lists, Sequence) or isinstance(lists, str) or not lists:
        return False
    return all(_is_list(r) and r and all(map(_is_number, r)) and len(set(r)) == len(r) for r in lists)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
