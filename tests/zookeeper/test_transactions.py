"""The contract, second part: transactions and their zxids. Every case runs on both ZooKeepers."""

from __future__ import annotations

from typing import Any

from kcontrol.core.effects import Op
from tests.zookeeper.support import create, node, put, stat, transact


def test_a_transaction_has_one_zxid(client: Any) -> None:
    """All operations of a transaction happen at one zxid."""
    create(client, "/a")
    written = transact(client, Op("create", "/b"), Op("set", "/a", b"x"), Op("create", "/a/c"))
    assert (
        stat(client, "/b").czxid
        == stat(client, "/a").mzxid
        == stat(client, "/a").pzxid
        == stat(client, "/a/c").czxid
        == written.zxid
    )


def test_a_transaction_answers_per_operation(client: Any) -> None:
    """The answer has one version and one path for each operation: 0 for a create, the new one for a set, none for the rest."""
    for path in ("/a", "/b"):
        create(client, path)
    ops = (Op("create", "/n-", sequential=True), Op("set", "/a"), Op("check", "/a", expected_version=1), Op("delete", "/b"))
    written = transact(client, *ops)
    assert (written.versions, written.paths) == ((0, 1, None, None), ("/n-0000000002", "/a", "/a", "/b"))


def test_an_operation_sees_the_ones_before_it(client: Any) -> None:
    """A transaction may create a znode, fill it, check the version it made, give it a child and take all of it away again."""
    ops = (
        Op("create", "/a"), Op("set", "/a", b"x", 0), Op("check", "/a", expected_version=1), Op("create", "/a/b"),
        Op("delete", "/a/b"), Op("delete", "/a", expected_version=1), Op("create", "/a", b"last"),
    )  # fmt: skip
    written = transact(client, *ops)
    assert written.versions == (0, 1, None, 0, None, None, 0)
    data, found = node(client, "/a")
    assert (data, found.version, found.cversion, found.czxid) == (b"last", 0, 0, written.zxid)


def test_a_failed_operation_undoes_the_ones_before_it(zookeeper: Any, client: Any) -> None:
    """A transaction whose last operation fails leaves the tree as it was, stats included."""
    for path in ("/a", "/b", "/a/x"):
        create(client, path, b"x")
    before = zookeeper.tree()
    root = stat(client, "/")
    ops = (
        Op("create", "/c"), Op("set", "/a", b"y"), Op("delete", "/b"), Op("create", "/a/n-", sequential=True), Op("delete", "/a"),
    )  # fmt: skip
    written = transact(client, *ops)
    assert written[1:] == ("NotEmpty", 4, (), (), ())
    assert zookeeper.tree() == before
    assert stat(client, "/") == root


def test_the_first_failed_operation_is_named(client: Any) -> None:
    """Where several operations would fail, error and index are those of the first one."""
    create(client, "/a")
    written = transact(client, Op("set", "/a"), Op("create", "/a"), Op("delete", "/no"), Op("check", "/a", expected_version=9))
    assert (written.error, written.failed_index) == ("NodeExists", 1)


def test_an_operation_fails_on_what_the_ones_before_it_left(client: Any) -> None:
    """A version that was right before the transaction is wrong behind a set of the same transaction."""
    create(client, "/a")
    written = transact(client, Op("set", "/a", b"x", 0), Op("set", "/a", b"y", 0))
    assert (written.error, written.failed_index) == ("BadVersion", 1)
    assert node(client, "/a").data == b""


def test_a_znode_deleted_in_a_transaction_is_missing_behind(client: Any) -> None:
    """An operation on a znode that the same transaction has deleted fails with NoNode."""
    create(client, "/a")
    written = transact(client, Op("delete", "/a"), Op("set", "/a"))
    assert (written.error, written.failed_index) == ("NoNode", 1)
    assert stat(client, "/a").version == 0


def test_a_check_fences(client: Any) -> None:
    """A write behind a check of the epoch's version happens at that version only."""
    create(client, "/epoch")
    create(client, "/a")
    assert transact(client, Op("check", "/epoch", expected_version=0), Op("set", "/a")).versions == (None, 1)
    put(client, "/epoch")
    fenced = transact(client, Op("check", "/epoch", expected_version=0), Op("set", "/a"))
    assert (fenced.error, fenced.failed_index) == ("BadVersion", 0)
    assert stat(client, "/a").version == 1


def test_a_check_changes_nothing(zookeeper: Any, client: Any) -> None:
    """A check alone succeeds at the right version, at any version for -1, and leaves every stat as it was."""
    create(client, "/a")
    before = zookeeper.tree()
    assert transact(client, Op("check", "/a", expected_version=0)).versions == (None,)
    assert transact(client, Op("check", "/a")).error is None
    assert zookeeper.tree() == before


def test_a_check_needs_the_znode(client: Any) -> None:
    """A check of a missing znode fails with NoNode."""
    assert transact(client, Op("check", "/a")).error == "NoNode"


def test_an_empty_transaction_succeeds(client: Any) -> None:
    """A transaction without operations is answered with a zxid and nothing else."""
    before = create(client, "/a").zxid
    assert transact(client) == (before + 1, None, -1, (), (), ())


def test_created_and_deleted_in_one_transaction_leaves_its_trace(client: Any) -> None:
    """A child that comes and goes in one transaction counts twice in its parent's cversion, and moves its pzxid."""
    create(client, "/a")
    written = transact(client, Op("create", "/a/b"), Op("delete", "/a/b"))
    found = stat(client, "/a")
    assert (found.cversion, found.num_children, found.pzxid) == (2, 0, written.zxid)
    assert client.children(["/a"], watch=False) == [()]


def test_sequential_names_count_within_a_transaction(client: Any) -> None:
    """Two sequential creations of one transaction get two numbers."""
    create(client, "/q")
    written = transact(client, Op("create", "/q/n-", sequential=True), Op("create", "/q/n-", sequential=True))
    assert written.paths == ("/q/n-0000000000", "/q/n-0000000001")


def test_every_write_takes_one_zxid(client: Any) -> None:
    """Zxids go up by one per transaction: also for a failed one, a check alone and an empty one."""
    transactions: list[tuple[Op, ...]] = [
        (Op("create", "/a"),), (Op("create", "/a"),), (Op("check", "/a"),), (), (Op("delete", "/b"),),
    ]  # fmt: skip
    zxids = [written.zxid for written in client.write([*transactions, (Op("set", "/a"),)])]
    assert zxids == list(range(zxids[0], zxids[0] + 6))


def test_sessions_take_zxids_too(zookeeper: Any, client: Any) -> None:
    """The opening of a session takes one zxid and its end another one."""
    first = create(client, "/a").zxid
    closed = zookeeper.end(zookeeper.connect())
    assert closed.zxid == first + 2
    assert create(client, "/b").zxid == first + 3


def test_pipelined_transactions_are_independent(client: Any) -> None:
    """In a batch of transactions a failed one does not keep the ones behind it from happening."""
    batch: list[tuple[Op, ...]] = [(Op("create", "/a"),), (Op("create", "/b"), Op("create", "/a")), (Op("create", "/a/c"),)]
    assert [written.error for written in client.write(batch)] == [None, "NodeExists", None]
    assert [found is not None for found in client.exists(["/a", "/b", "/a/c"], watch=False)] == [True, False, True]


def test_pipelined_transactions_happen_in_order(client: Any) -> None:
    """A thousand pipelined sets of one znode have growing zxids and versions, and the last one stays."""
    create(client, "/a")
    written = client.write([(Op("set", "/a", b"%d" % number),) for number in range(1_000)])
    zxids = [one.zxid for one in written]
    assert zxids == sorted(set(zxids))
    assert [one.versions for one in written] == [(number,) for number in range(1, 1_001)]
    data, found = node(client, "/a")
    assert (data, found.version, found.mzxid) == (b"999", 1_000, zxids[-1])


def test_every_pipelined_zxid_is_the_one_its_write_got(client: Any) -> None:
    """Of 500 pipelined transactions, one in five of which fails, each success's zxid is the mzxid that is read back."""
    client.write([(Op("create", f"/n{number}"),) for number in range(0, 500, 5)])
    paths = [f"/n{number}" for number in range(500)]
    written = client.write([(Op("create", path), Op("set", path, b"x")) for path in paths])
    assert [one.error for one in written] == ["NodeExists" if number % 5 == 0 else None for number in range(500)]
    stats = client.exists(paths, watch=False)
    assert [one.zxid for one in written if not one.error] == [
        found.mzxid for found, one in zip(stats, written, strict=True) if not one.error
    ]
