"""Which bytes of growing and rotated files are read: nothing twice, nothing lost. Without Spark."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from kcontrol.core.errors import UserError
from kcontrol.pipeline.follow.followed_files import Followed, copy_slice, look, size_of_lines
from tests.pipeline.growing_logs import Growing

LINES = {
    name: "".join(f"[2020-01-01 00:00:{n % 60:02},{n:03}] INFO {name} ä {n} (kafka.x)\n" for n in range(400)).encode()
    for name in ("server.log", "controller.log")
}


class Reader:
    """Reads growing files as `follow` does, and keeps the bytes of each file."""

    def __init__(self, folder: Path, copies: Path) -> None:
        self.folder, self.copies = folder, copies
        self.known: list[Followed] = []
        self.bytes: dict[str, bytes] = {}
        self.next_id = 1

    def read(self, most: int = 10**9) -> None:
        """Look, and read at most `most` bytes of each file."""
        found = look([self.folder], self.copies, self.known, self.next_id)
        self.known = found.files
        self.next_id += len(found.files)
        self.bytes = {file.id: self.bytes.get(file.id, b"") for file in self.known}
        for file in self.known:
            if file.unread and (item := copy_slice(file, self.copies, most)):
                part = gzip.decompress(item.copy.read_bytes()) if file.is_packed else item.copy.read_bytes()
                self.bytes[file.id] = self.bytes[file.id][: file.offset] + part
                file.seen, file.content, file.unread = item.seen, item.content, False
                file.offset = 0 if file.is_packed else max(0, item.seen - 50)  # a last record of 50 bytes may go on

    def files(self) -> list[tuple[str, bytes]]:
        """Return the name and the bytes of each file that has bytes."""
        return sorted((file.path, self.bytes[file.id]) for file in self.known if self.bytes[file.id])


def in_folder(folder: Path) -> list[tuple[str, bytes]]:
    """Return the name and the bytes, unpacked, of each file of a folder that has bytes."""
    texts = {path: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in folder.iterdir()}
    return sorted((str(path), text) for path, text in texts.items() if text)


@pytest.mark.parametrize("seed", range(60))
def test_rotated_files_are_read_once(tmp_path: Path, seed: int) -> None:
    """After looks at random moments between appends and rotations of four kinds, the bytes read are those of the files."""
    choose = random.Random(seed)
    logs = Growing(tmp_path / "logs", LINES, choose)
    (tmp_path / "copies").mkdir()
    logs.append(5_000)
    reader = Reader(logs.folder, tmp_path / "copies")
    for _ in range(40):
        step = choose.random()
        if step < 0.5:
            logs.append(3_000)
        elif step < 0.7:
            logs.rotate()
        else:
            reader.read(choose.choice([500, 10**9]))
    logs.finish()
    for _ in range(200):
        reader.read()
        if not any(file.unread for file in reader.known):
            break
    reader.read()
    assert reader.files() == in_folder(logs.folder), f"seed {seed}"


def followed(tmp_path: Path) -> tuple[Path, Reader]:
    """Return a log that was read, and its reader."""
    (tmp_path / "copies").mkdir()
    log = tmp_path / "logs" / "server.log"
    log.parent.mkdir()
    log.write_bytes(LINES["server.log"])
    reader = Reader(log.parent, tmp_path / "copies")
    reader.read()
    return log, reader


def test_a_deleted_file_is_gone_and_kept(tmp_path: Path) -> None:
    """The bytes of a deleted file stay, under its name; the file that takes the name is read from its beginning."""
    log, reader = followed(tmp_path)
    log.unlink()
    log.write_bytes(LINES["controller.log"])
    reader.read()
    assert [(file.gone, reader.bytes[file.id]) for file in reader.known] == [
        (False, LINES["controller.log"]), (True, LINES["server.log"]),
    ]  # fmt: skip


def test_a_truncated_file_that_has_grown_again_is_a_new_file(tmp_path: Path) -> None:
    """A file of the same inode, as long as before, but with other bytes is read from its beginning; the former bytes stay."""
    log, reader = followed(tmp_path)
    inode = log.stat().st_ino
    other = LINES["server.log"].replace(b"2020", b"2021") * 2
    with log.open("r+b") as file:
        file.truncate(0)
        file.write(other)
    reader.read()
    assert log.stat().st_ino == inode
    assert sorted((file.gone, reader.bytes[file.id]) for file in reader.known) == [(False, other), (True, LINES["server.log"])]


def test_a_copy_beside_the_log_is_a_file_of_its_own_until_the_log_is_truncated(tmp_path: Path) -> None:
    """A look between the copy and the truncation of copytruncate finds two files; the next look finds the lines once."""
    log, reader = followed(tmp_path)
    copy = log.with_name("server.log.1")
    copy.write_bytes(log.read_bytes())
    reader.read()
    assert len(reader.known) == 2
    log.write_bytes(b"")
    reader.read()
    assert reader.files() == [(str(copy), LINES["server.log"])]


def test_a_file_named_by_itself_is_read_to_its_end_after_its_rotation(tmp_path: Path) -> None:
    """If PATH is a file, lines appended before its renaming are read from the file with the later name."""
    log, reader = followed(tmp_path)
    reader.folder = log
    with log.open("ab") as file:
        file.write(b"last\n")
    log.rename(log.with_name("server.log.1"))
    log.write_bytes(b"first\n")
    reader.read()
    assert reader.files() == [(str(log), b"first\n"), (f"{log}.1", LINES["server.log"] + b"last\n")]


def test_a_file_that_is_moved_to_another_folder_is_read_once(tmp_path: Path) -> None:
    """A log that has grown and is moved to another folder is known under its new name, and no line is read twice."""
    log, reader = followed(tmp_path)
    (log.parent / "old").mkdir()
    with log.open("ab") as file:
        file.write(b"last\n")
    moved = log.rename(log.parent / "old" / log.name)
    reader.read()
    assert reader.files() == [(str(moved), LINES["server.log"] + b"last\n")] and len(reader.known) == 1


def test_a_copy_that_takes_the_place_of_a_file_is_read_from_the_known_byte_on(tmp_path: Path) -> None:
    """A longer file with another inode and the known beginning, as rsync leaves it, is the known file."""
    log, reader = followed(tmp_path)
    log.rename(tmp_path / "away")
    log.write_bytes(LINES["server.log"] + b"last\n")
    reader.read()
    assert reader.files() == [(str(log), LINES["server.log"] + b"last\n")]
    assert [(file.id, (tmp_path / "copies" / f"{file.id}.log").stat().st_size) for file in reader.known] == [("f1", 55)]


def test_a_compressed_file_that_is_not_complete_is_read_again(tmp_path: Path) -> None:
    """A .gz that was damaged, because gzip still wrote it, is one file when it is complete."""
    _, reader = followed(tmp_path)
    packed = tmp_path / "logs" / "controller.log.gz"
    whole = gzip.compress(random.Random(1).randbytes(4000).hex().encode(), mtime=0)
    packed.write_bytes(whole[:1000])
    found = look([reader.folder], tmp_path / "copies", reader.known, 7).files
    (new,) = (file for file in found if file.unread)
    item = copy_slice(new, tmp_path / "copies", 0)
    assert item is not None and item.content == ""
    new.seen, new.content, new.unread = item.seen, item.content, False
    packed.write_bytes(whole)
    reader.known = found
    reader.read()
    assert [(file.id, len(reader.bytes[file.id])) for file in reader.known if file.is_packed] == [(new.id, 8000)]


def test_a_file_that_is_no_log_is_refused_when_it_shows(tmp_path: Path) -> None:
    """A log that becomes a binary file is refused, and no longer followed."""
    log, reader = followed(tmp_path)
    log.write_bytes(bytes(range(256)) * 40)
    found = look([reader.folder], tmp_path / "copies", reader.known, 7)
    assert found.files == [] and [item.reason for item in found.refused] == [f"{log} is a binary file, no log."]


def test_a_path_without_a_log_is_refused_at_the_first_look_only(tmp_path: Path) -> None:
    """A path that does not exist is one sentence; a folder whose log is just renamed away is no error."""
    with pytest.raises(UserError, match="There is no file or folder"):
        look([tmp_path / "logs"], tmp_path / "copies", [], 1)
    log, reader = followed(tmp_path)
    log.rename(tmp_path / "away")
    assert [file.gone for file in look([reader.folder], tmp_path / "copies", reader.known, 7).files] == [True]


@pytest.mark.parametrize("lines", [0, 1, 2, 3, 20_000])
def test_the_size_of_lines_is_counted(tmp_path: Path, lines: int) -> None:
    """The bytes of a number of lines are counted to their line break, also if the file has several chunks."""
    content = [b"%d%s\n" % (n, b"x" * 100) for n in range(30_000)]
    (tmp_path / "a.log").write_bytes(b"".join(content))
    assert size_of_lines(tmp_path / "a.log", lines) == sum(map(len, content[:lines]))
