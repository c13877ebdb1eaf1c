"""Znodes in the output format of ZooKeeper's own shell."""

from datetime import UTC, datetime

from kcontrol.core.effects import Stat


def hexadecimal(number: int) -> str:
    """Return "0x" and a 64-bit number as Java's Long.toHexString prints it, also for negative session ids."""
    return f"0x{number & 0xFFFF_FFFF_FFFF_FFFF:x}"


def date(time_ms: int) -> str:
    """Return a time in the local time zone as Java's Date.toString does, such as "Tue Nov 24 10:00:00 UTC 2015"."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone().strftime("%a %b %d %H:%M:%S %Z %Y")


def format_data(data: bytes) -> str:
    """Unprintable characters are replaced, so that a znode's data cannot control the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in data.decode("utf-8", errors="replace"))


def format_stat(data: bytes, stat: Stat) -> str:
    """Return a znode's data and the eleven lines of its Stat, as `get -s` of ZooKeeper's shell prints them.

    Source: org/apache/zookeeper/cli/StatPrinter.java and GetCommand.java, ZooKeeper 3.9.
    """
    lines = {
        "cZxid": hexadecimal(stat.czxid), "ctime": date(stat.ctime), "mZxid": hexadecimal(stat.mzxid), "mtime": date(stat.mtime),
        "pZxid": hexadecimal(stat.pzxid), "cversion": stat.cversion, "dataVersion": stat.version, "aclVersion": stat.aversion,
        "ephemeralOwner": hexadecimal(stat.ephemeral_owner), "dataLength": stat.data_length, "numChildren": stat.num_children,
    }  # fmt: skip
    return "\n".join([format_data(data), *(f"{name} = {value}" for name, value in lines.items())])
