"""Commands whose folder of tables is a disk with little room: a file system in memory (tmpfs), of a size in bytes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.pipeline.kills import COMMAND, Arguments

PAGE_BYTES = 4096
# tmpfs is mounted in a namespace of its own, so it ends with the command; a second copy shows what the folder had in the end.
ON_A_SMALL_DISK = """
mount -t tmpfs -o size="$DISK_SIZE" tmpfs "$DISK_OUT" || exit 99
cp -a "$DISK_FORMER/." "$DISK_OUT" || exit 98
"$@"
status=$?
cp -a "$DISK_OUT/." "$DISK_KEPT" || exit 97
exit $status
"""
# The rights to mount come from a user namespace, or from sudo where the system does not allow these namespaces.
WAYS = (["unshare", "--user", "--map-root-user", "--mount"], ["sudo", "-n", "--preserve-env", "unshare", "--mount"])


class SmallDisk(NamedTuple):
    """Folder `out` on a disk with a copy of `former` and `room` more bytes; after a command `kept` has a copy of `out`."""

    out: Path
    former: Path
    kept: Path
    room: int

    def run(self, arguments: Arguments) -> subprocess.CompletedProcess[str]:
        """Run the command, and return its exit status and its output."""
        for folder in (self.out, self.kept):
            folder.mkdir()
        sizes = (path.stat().st_size for path in self.former.rglob("*") if path.is_file())
        pages = sum(-(-size // PAGE_BYTES) for size in sizes)
        names = {
            "DISK_SIZE": str(pages * PAGE_BYTES + self.room), "DISK_OUT": str(self.out), "DISK_FORMER": str(self.former),
            "DISK_KEPT": str(self.kept),
        }  # fmt: skip
        return subprocess.run(
            [*_way(), "sh", "-c", ON_A_SMALL_DISK, "sh", *COMMAND, *arguments], check=False, env=os.environ | names,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip


def _way() -> list[str]:
    """Return a command that may mount; fail if there is none."""
    for way in WAYS:
        try:
            if subprocess.run([*way, "true"], check=False, capture_output=True).returncode == 0:
                return way
        except FileNotFoundError:
            continue
    raise AssertionError("no disk of a chosen size can be made: allow user namespaces, or sudo without a password")
