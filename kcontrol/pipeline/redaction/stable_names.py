"""The stable names of `--redact`, such as "topic-bdfghjkmnp": a kind, and letters that a key and the former name determine.

The letters are a keyed hash of the name alone. So a name gets equal letters in every round, call and command, whichever names
come before it, and no list of names is kept beside the tables. The key is a file in the user's own folder for settings: without
the key no reader of the tables can test which name became which.
"""

import contextlib
import hashlib
import hmac
import os
import re
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from kcontrol.core.errors import UserError

KINDS = ("topic", "host", "client")
"""The kinds of names; a name of two kinds counts as the first of these."""
OPTIONS = tuple(f"{kind}s" for kind in KINDS)
OWN = {"__consumer_offsets", "__transaction_state", "__cluster_metadata", "None", "null", "true", "false"}
"""Kafka's own topics, and words that stand in the place of a name that is missing."""
LETTERS = "bcdfghjkmnpqrstvwxyz"
"""Neither a digit, so that no stable name looks like a partition, nor a vowel, so that the letters are no word."""
MEMBER_ID = re.compile(r"(.*)-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32})", re.DOTALL)
"""The id of a member of a group: its client id or instance id, and a UUID."""
SIZE, KEY_BYTES = 10, 32
KEY_FILE = "redaction-key"


class Redaction(NamedTuple):
    """The kinds of names that `--redact` replaces by stable names, and the secret key that determines the stable names.

    With the kinds ("topic", "host"), a topic can become "topic-bdfghjkmnp".
    """

    kinds: tuple[str, ...]
    key: bytes

    def letters(self, name: str) -> str:
        """Return the ten letters, such as "bdfghjkmnp", that stand for `name` in its stable name."""
        return _letters(self.key, name)

    def stable(self, kind: str, name: str) -> str:
        """Kafka's own names, and kinds outside `kinds`, are returned unchanged."""
        return name if kind not in self.kinds or not name or name in OWN else f"{kind}-{self.letters(name)}"

    def mark(self) -> dict[str, Any]:
        """Depends on the secret key without showing it; `check_same` compares marks."""
        return {"kinds": sorted(self.kinds), "key": self.letters("")}


@lru_cache(maxsize=65_536)
def _letters(key: bytes, name: str) -> str:
    number = int.from_bytes(hmac.digest(key, name.encode("utf-8", "surrogateescape"), hashlib.sha256), "big")
    return "".join(LETTERS[number // len(LETTERS) ** place % len(LETTERS)] for place in range(SIZE))


def kinds_of(option: str) -> tuple[str, ...]:
    """Of "topics,hosts" in the singular, each once. Raises UserError, which lists the kinds."""
    asked = [kind.strip() for kind in option.split(",")]
    if wrong := [kind for kind in asked if kind not in OPTIONS]:
        raise UserError(f"--redact cannot be {wrong[0]!r}: write a list of {', '.join(OPTIONS)}, such as topics,hosts.")
    return tuple(kind for kind in KINDS if f"{kind}s" in asked)


def redaction_of(option: str | None) -> Redaction | None:
    """With the key of this user. Raises UserError for an unknown kind, or a key that cannot be read or made."""
    return None if option is None else Redaction(kinds_of(option), user_key())


def key_file() -> Path:
    """Return the path of the key: `kcontrol/redaction-key` in XDG_CONFIG_HOME, else in `.config` of the home folder."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kcontrol" / KEY_FILE


def user_key() -> bytes:
    """Return the key of this user; the first call makes the key, in a file that only this user can read.

    Raises UserError if the file can be neither read nor written, or has no key.
    """
    path = key_file()
    try:
        if not path.exists():
            _make(path)
        key = bytes.fromhex(path.read_text().strip())
    except OSError as problem:
        raise UserError(
            f"The key of --redact in {path} cannot be used ({problem.strerror}): set XDG_CONFIG_HOME to a folder of your own."
        ) from None
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UserError(f"{path} has no key of --redact: move this file, so that the next call makes a new key.")
    return key


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f"{KEY_FILE}.{os.getpid()}")
    with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(f"{secrets.token_hex(KEY_BYTES)}\n")
    # A link fails if another process has made a key meanwhile; that key is then used.
    try:
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(unfinished)
    finally:
        unfinished.unlink()


def check_same(held: dict[str, Any] | None, redaction: Redaction | None, out: Path) -> None:
    """Raise UserError if the tables in `out` were written with another redaction than `redaction`: other kinds or another key.

    `held` is the `mark()` of the tables' redaction; None means that no name is replaced.
    """
    now = None if redaction is None else redaction.mark()
    if held == now:
        return
    if held is not None and now is not None and held.get("kinds") == now["kinds"]:
        raise UserError(f"{out} has stable names of another key than {key_file()}: name another folder for the tables.")
    if held is None:
        raise UserError(f"{out} has tables without --redact: leave out --redact, or name another folder for the tables.")
    option = f"--redact {','.join(f'{kind}s' for kind in held['kinds'])}"
    raise UserError(f"{out} has tables with {option}: use {option} again, or name another folder for the tables.")
