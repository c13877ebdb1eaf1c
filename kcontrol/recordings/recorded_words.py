"""The door for scenarios: the recorder of real brokers calls actions otherwise than this project does.

`translated` is the one reader of WORDS. Behind it a step has the words of `ACTIONS` and of `Lab`: in the player, in the records
`scenario` of journals, in comparisons. Some words stand for what Kafka's tools do by writing a znode, and for several actions at
once; `player.STEPS` has them all.
"""

from collections.abc import Mapping
from typing import Any

# fmt: off
WORDS = {
    # of the recorder   of this project
    "term":             "terminate",
    "resume":           "thaw",
    "prefer":           "elect_preferred",
    "create":           "create_topic",
    "delete-topic":     "delete_topic",
    "expand":           "create_partitions",  # by the tool, in the topic's znode
    "reassign":         "reassign_by_znode",
    "api-reassign":     "reassign",
    "znode-set":        "set",
    "znode-delete":     "delete",
}
# fmt: on
TRANSLATED = "translated"
"""The mark of a scenario that has our words: one that was translated, or was made from a journal."""


def translated(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario or recording in our words; a word that is not the recorder's stays."""
    if scenario.get(TRANSLATED):
        return dict(scenario)
    steps = [{**step, "do": _actions(step["do"])} if "do" in step else _actions(step) for step in scenario["steps"]]
    return {**scenario, TRANSLATED: True, "steps": steps}


def _actions(do: Mapping[str, Any]) -> dict[str, Any]:
    ours = {WORDS.get(word, word): argument for word, argument in do.items()}
    several = [_actions(each) if isinstance(each, dict) else each for each in do.get("together", ())]
    return ours | ({"together": several} if several else {})
