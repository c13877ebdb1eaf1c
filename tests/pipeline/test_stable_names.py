"""Stable names of `--redact`: equal for equal names and keys, and a key that one user keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kcontrol.core.errors import UserError
from kcontrol.pipeline.logs.redaction import Names
from kcontrol.pipeline.redaction import stable_names
from kcontrol.pipeline.redaction.stable_names import Redaction, check_same, kinds_of, redaction_of, user_key

ALL = Redaction(("topic", "host", "client"), bytes(range(32)))


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    return tmp_path / "settings"


def test_the_letters_depend_on_the_name_and_the_key_alone() -> None:
    """Equal names get equal letters under each kind, and other letters by another key; no letter is a digit or a vowel."""
    assert ALL.stable("topic", "payroll") == f"topic-{ALL.letters('payroll')}"
    assert ALL.stable("client", "payroll") == f"client-{ALL.letters('payroll')}"
    assert ALL._replace(key=bytes(32)).letters("payroll") != ALL.letters("payroll")
    found = {ALL.letters(f"name-{number}") for number in range(1000)}
    assert len(found) == 1000 and all(re.fullmatch("[b-df-hj-np-tv-z]{10}", letters) for letters in found)


def test_a_kind_that_is_not_asked_and_kafkas_own_topics_keep_their_names() -> None:
    """Only the chosen kinds are replaced, and `__consumer_offsets` never."""
    assert Redaction(("topic",), b"k").stable("host", "vault") == "vault"
    assert ALL.stable("topic", "__consumer_offsets") == "__consumer_offsets"


def test_the_order_of_lines_does_not_change_a_stable_name() -> None:
    """A group and a topic of one name have one stable name, in whichever order the lines name them."""
    lines = ["Group payroll with generation 5 is now empty (__consumer_offsets-3)", "partition [payroll,1] is new"]
    for order in (lines, lines[::-1]):
        names = Names(ALL)
        for line in order:
            names.learn(line)
        assert names.of("payroll") == ALL.stable("topic", "payroll")
    names = Names(ALL)
    names.learn(lines[0])
    assert names.of("payroll") == ALL.stable("client", "payroll")


def test_a_name_that_is_kept_keeps_its_kind() -> None:
    """A later line with a better place does not change the stable name of a name that was found before."""
    names = Names(ALL, {"payroll": "client"})
    names.learn("partition [payroll,1] and partition [wages,0]")
    assert names.kinds == {"payroll": "client", "wages": "topic"} and names.fresh == ["wages"]


def test_an_unknown_kind_is_refused() -> None:
    """The sentence lists the kinds."""
    assert kinds_of("clients, topics") == ("topic", "client") and redaction_of(None) is None
    with pytest.raises(UserError, match="--redact cannot be 'names': write a list of topics, hosts, clients, such as"):
        kinds_of("topics,names")


def test_the_key_is_made_once_and_only_its_user_can_read_it(settings: Path) -> None:
    """The first call makes a random key in a file with the mode 600; later calls return this key."""
    key = user_key()
    assert len(key) == stable_names.KEY_BYTES and user_key() == key
    (file,) = (settings / "kcontrol").iterdir()
    assert file == stable_names.key_file() and file.stat().st_mode & 0o777 == 0o600
    file.unlink()
    assert user_key() != key


def test_two_processes_use_one_key(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If another process makes the key at the same time, its key is used."""
    make = stable_names._make

    def late(path: Path) -> None:
        make(path)
        first.append(path.read_text())
        make(path)

    first = list[str]()
    monkeypatch.setattr(stable_names, "_make", late)
    assert user_key() == bytes.fromhex(first[0])


def test_a_key_that_cannot_be_used_is_refused(settings: Path) -> None:
    """A file without a key, and a folder in the place of the file, are one sentence with the path."""
    path = stable_names.key_file()
    path.parent.mkdir(parents=True)
    path.write_text("abc\n")
    with pytest.raises(UserError, match="has no key of --redact: move this file"):
        user_key()
    path.unlink()
    path.mkdir()
    with pytest.raises(UserError, match="set XDG_CONFIG_HOME to a folder of your own"):
        user_key()


def test_tables_of_another_redaction_are_refused(tmp_path: Path, settings: Path) -> None:
    """Other kinds, no redaction and another key than those of the tables are one sentence each; equal ones are accepted."""
    check_same(None, None, tmp_path)
    check_same(ALL.mark(), ALL, tmp_path)
    for held, now, words in (
        (None, ALL, "has tables without --redact: leave out --redact,"),
        (ALL.mark(), None, "clients,hosts,topics: use --redact clients,hosts,topics again"),
        (ALL.mark(), ALL._replace(kinds=("topic",)), "clients,hosts,topics: use --redact clients,hosts,topics again"),
        (ALL.mark(), ALL._replace(key=bytes(32)), "has stable names of another key than"),
    ):
        with pytest.raises(UserError, match=words):
            check_same(held, now, tmp_path)
