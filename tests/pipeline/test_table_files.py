"""Files that are left in a folder of tables are found, also if their number and the rows of the tables are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from kcontrol.pipeline.pipeline import MARK, NEW
from tests.pipeline.table_files import SUCCESS, files_in

FIRST, SECOND = ("-".join((digit * 8, digit * 4, digit * 4, digit * 4, digit * 12)) for digit in "12")
DAY = "day=2026-01-01"


def written(out: Path, write: str, step: int = 1) -> Path:
    """Write table `t` with two files under this id of the write, rows by `step` (-1: descending); return the folder."""
    (out / "t" / DAY).mkdir(parents=True)
    for number in range(2):
        path = out / "t" / DAY / f"part-0000{number}-{write}.c000.snappy.parquet"
        parquet.write_table(arrow.table({"n": [number, number + 2][::step]}), path)
        path.with_name(f".{path.name}.crc").write_bytes(b"crc")
    (out / "t" / SUCCESS).touch()
    (out / "t" / f".{SUCCESS}.crc").write_bytes(b"crc")
    (out / MARK).write_text("{}\n")
    return out


def file_of(out: Path, number: int, write: str = FIRST) -> Path:
    return out / "t" / DAY / f"part-0000{number}-{write}.c000.snappy.parquet"


def test_two_writes_of_equal_rows_have_equal_files(tmp_path: Path) -> None:
    """Folders whose files differ only in the id of the write and in the order of rows have equal files."""
    first, second = written(tmp_path / "first", FIRST), written(tmp_path / "second", SECOND, step=-1)
    assert files_in(first, ["t"]) == files_in(second, ["t"])
    assert files_in(first, ["t"])[f"t/{DAY}/part-00001.c000.snappy.parquet"] == ["{'n': 1}", "{'n': 3}"]


def _of_another_write(out: Path) -> None:
    """Put a file of another write, with its checksum, in the place of one file."""
    for before in (file_of(out, 1), file_of(out, 1).with_name(f".{file_of(out, 1).name}.crc")):
        before.rename(before.with_name(before.name.replace(FIRST, SECOND)))


def _checksum_of_no_file(out: Path) -> None:
    checksum = file_of(out, 1).with_name(f".{file_of(out, 1).name}.crc")
    checksum.rename(checksum.with_name(checksum.name.replace(FIRST, SECOND)))


@pytest.mark.parametrize(
    "spoil",
    [_of_another_write, _checksum_of_no_file, lambda out: (out / NEW).mkdir(), lambda out: (out / f"{MARK}.new").touch(),
     lambda out: (out / "t" / "_temporary").mkdir(), lambda out: (out / "t" / DAY / "_part-00002").touch()],
    ids=["another write", "checksum", "unfinished tables", "unfinished mark", "unfinished folder", "file that no table has"],
)  # fmt: skip
def test_a_file_of_no_table_is_found(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """A file or folder that belongs to no table, or to another write of a table, is an error."""
    spoil(written(tmp_path / "out", FIRST))
    with pytest.raises(AssertionError, match=r"files of 2 writes|files that are missing, or that no table has"):
        files_in(tmp_path / "out", ["t"])


def test_a_row_in_another_file_is_a_difference(tmp_path: Path) -> None:
    """Folders with equal rows of the table, but with a row in another file, have different files."""
    first, second = written(tmp_path / "first", FIRST), written(tmp_path / "second", FIRST)
    parquet.write_table(arrow.table({"n": [0]}), file_of(second, 0))
    parquet.write_table(arrow.table({"n": [1, 2, 3]}), file_of(second, 1))
    assert files_in(first, ["t"]) != files_in(second, ["t"])
