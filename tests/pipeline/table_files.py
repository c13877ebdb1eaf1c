"""The files in a folder of tables: which of them hold rows of a table, and whether any other file is left."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow.dataset as datasets
import pyarrow.parquet as parquet

from kcontrol.pipeline.log_journal.run_rows import FILE
from kcontrol.pipeline.pipeline import MARK

# Spark gives all files of one write of a table the id of this write; two commands have different ids.
WRITE = re.compile(r"-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
SUCCESS = "_SUCCESS"


def rows_of(path: Path) -> list[str]:
    """Return the rows of a Parquet file, or of all files in a folder, sorted as texts."""
    return sorted(map(repr, parquet.read_table(path).to_pylist()))


def files_of(out: Path, tables: Sequence[str]) -> set[tuple[str, int]]:
    """Return each file of the tables in `out`: its path in this folder, and the time of its last change in ns."""
    files = [path for name in tables for path in (out / name).rglob("*") if path.is_file()]
    return {(str(path.relative_to(out)), path.stat().st_mtime_ns) for path in files}


def is_whole(table: Path) -> bool:
    """Whether there is no folder of the table, or one with `_SUCCESS`, which Spark writes last, or one file of PyArrow."""
    names = {path.name for path in table.iterdir()} if table.exists() else {SUCCESS}
    return SUCCESS in names or (names == {FILE} and bool(parquet.read_schema(table / FILE)))


def files_in(out: Path, tables: Sequence[str]) -> dict[str, list[str]]:
    """Rows by file, its path without the write's id; AssertionError for files of no table and files of two writes."""
    named, found = {out / MARK}, {MARK: [(out / MARK).read_text()]}
    for name in tables:
        files = [Path(file) for file in datasets.dataset(out / name, format="parquet").files]
        writes = {tuple(WRITE.findall(file.name)) for file in files}
        assert len(writes) == 1, f"the table {name} has files of {len(writes)} writes"
        found |= {WRITE.sub("", str(file.relative_to(out))): rows_of(file) for file in files}
        success = out / name / SUCCESS
        if writes != {()}:  # Spark writes an empty file after the last file of a table; PyArrow does not
            assert success.read_bytes() == b""
            files.append(success)
            # A checksum by Hadoop stands beside each file of Spark.
            named |= {file.with_name(f".{file.name}.crc") for file in files}
        named |= {*files, *(folder for file in files for folder in file.parents if out in folder.parents)}
    odd = sorted(str(path.relative_to(out)) for path in set(out.rglob("*")) ^ named)
    assert not odd, f"files that are missing, or that no table has: {odd}"
    return found
