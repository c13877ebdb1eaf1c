"""Writes the logs that the brokers of a run would have written, in the words of the run's release."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kcontrol.core.errors import UserError
from kcontrol.journal.journal import Record
from kcontrol.views import kafka_words


def save_logs(records: Sequence[Record], folder: Path) -> None:
    """Write the log files of the brokers of a run into `folder`, one subfolder per broker, in the words of the run's release.

    Raises UserError if `folder` exists already.
    """
    found: dict[Path, list[str]] = defaultdict(list)
    # The virtual time 0 is 1970-01-01 00:00:00.
    found_lines = kafka_words.in_kafkas_words(records, dated=True)
    for record, lines in zip(records, found_lines, strict=True):
        for line in lines:
            broker = record.to_json().fields["broker"] if record.id.broker is None else record.id.broker
            found[folder / f"broker-{broker}" / line.file].append(f"{line}\n")
    try:
        folder.mkdir(parents=True)
        for path, text in found.items():
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(text), encoding="utf-8")
    except FileExistsError:
        raise UserError(f"{folder} exists already: name a new folder for the logs.") from None
    except OSError as problem:
        raise UserError(
            f"The logs cannot be written to {folder}: {problem.strerror}; name another folder or make room."
        ) from None
