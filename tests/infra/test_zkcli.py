"""A znode is shown as ZooKeeper's own shell shows it."""

import itertools
import re
import subprocess
from pathlib import Path

import pytest

from kcontrol.core.effects import Op, Stat
from kcontrol.views.zkcli import format_stat
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.kazoo.read import read_znode
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper, class_path
from kcontrol.zookeeper.server.java import find_java

STAT = Stat(
    czxid=0x18, ctime=0, mzxid=0x2A, mtime=0, pzxid=0x18, cversion=1, version=2, aversion=3,
    ephemeral_owner=-0x7FFF_FFFF_FFFF_FFF0, data_length=4, num_children=5,
)  # fmt: skip


def test_value_and_eleven_lines() -> None:
    """The value comes first, then eleven named lines in the shell's order; ids are hexadecimal and never negative."""
    lines = format_stat(b"data", STAT).splitlines()
    assert [line for line in lines if "time" not in line] == [
        "data", "cZxid = 0x18", "mZxid = 0x2a", "pZxid = 0x18", "cversion = 1", "dataVersion = 2", "aclVersion = 3",
        "ephemeralOwner = 0x8000000000000010", "dataLength = 4", "numChildren = 5",
    ]  # fmt: skip
    assert [line.split(" = ")[0] for line in lines[2:5:2]] == ["ctime", "mtime"]
    assert len(lines) == 12


@pytest.mark.parametrize("control", [b"\x1b[31mred", b"\x07", b"\x00", b"\xff\xfe", "\u202e".encode()])
def test_a_value_cannot_steer_the_terminal(control: bytes) -> None:
    """Control characters, direction marks and what is no UTF-8 are shown as replacement characters."""
    shown = format_stat(control, STAT).partition("\ncZxid")[0]
    assert "\ufffd" in shown
    assert all(character.isprintable() for character in shown)


@pytest.mark.slow
@pytest.mark.zookeeper
def test_the_shell_of_zookeeper_prints_the_same(tmp_path: Path) -> None:
    """For a plain, an empty, a multi-line and an ephemeral znode, ZooKeeper's own shell ends its output with exactly ours."""
    jars = Path(class_path().split(":")[0]).parent
    with EmbeddedZooKeeper() as server, KazooZooKeeper(server.hosts) as ensemble:
        ops = [
            Op("create", "/plain", b"text"), Op("create", "/empty", b""), Op("create", "/lines", '{"a":1}\nä'.encode()),
            Op("create", "/short-lived", b"x", ephemeral=True), Op("create", "/plain/child"),
        ]  # fmt: skip
        ensemble.connect().write([tuple(ops), (Op("set", "/plain", b"other"),)])
        paths = ("/plain", "/empty", "/lines", "/short-lived", "/")
        znodes = [read_znode(server.hosts, path) for path in paths]
        # Without JLine the shell echoes nothing. Its thread of events prints the state of the connection between any two lines.
        classes = [class_path(), *map(str, [*jars.glob("commons-cli-*.jar"), *jars.glob("netty-*.jar")])]
        command = [find_java().path, "-Dstdout.encoding=UTF-8", "-cp", ":".join(classes)]
        command += ["org.apache.zookeeper.ZooKeeperMain", "-server", server.hosts]
        typed = "ls /\n" + "".join(f"get -s {path}\n" for path in paths) + "quit\n"
        shell = subprocess.run(command, input=typed.encode(), capture_output=True, check=True, cwd=tmp_path).stdout.decode()
    shell = re.sub(r"\nWATCHER::\n\nWatchedEvent [^\n]*\n", "", shell)
    assert [
        path for path, znode in zip(paths, znodes, strict=True) if f"\n{format_stat(znode.data, znode.stat)}\n" not in shell
    ] == []


@pytest.mark.zookeeper
def test_below_a_chroot() -> None:
    """The path is looked up below the chroot of the address, and looking creates nothing."""
    with EmbeddedZooKeeper() as server, KazooZooKeeper(server.hosts) as ensemble:
        ensemble.connect().write([(Op("create", "/a"), Op("create", "/a/b", b"deep"))])
        before = ensemble.tree()
        found = [
            read_znode(server.hosts + chroot, path).data
            for chroot, path in (("/a", "/b"), ("/a/b", "/"), ("/a", "/"), ("", "/a/b"))
        ]
        assert found == [b"deep", b"deep", b"", b"deep"]
        assert list(itertools.chain(ensemble.tree())) == list(before)
