"""What the lab uses of the recordings of real brokers: reading, playing, comparing, and journals of them.

Nothing else of this folder is imported by the reader's house (`lint-imports`). The names with `group` are of recordings of group
coordinators.
"""

from kcontrol.recordings import compare, player, recording, to_journal
from kcontrol.recordings.groups import compare as group_compare
from kcontrol.recordings.groups import from_journal as group_from_journal
from kcontrol.recordings.groups import player as group_player
from kcontrol.recordings.groups import recording as group_recording
from kcontrol.recordings.groups import to_journal as group_to_journal
from kcontrol.recordings.groups.from_journal import bytes_of

__all__ = (
    "bytes_of", "compare", "group_compare", "group_from_journal", "group_player", "group_recording", "group_to_journal", "player",
    "recording", "to_journal",
)  # fmt: skip
