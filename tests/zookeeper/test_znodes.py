"""The contract, first part: znodes, their stats, names and errors. Every case runs on both ZooKeepers."""

from __future__ import annotations

from typing import Any

import pytest

from kcontrol.core.effects import Op
from tests.zookeeper.support import create, delete, node, put, stat, transact


def test_a_new_znode_starts_at_nought(client: Any) -> None:
    """A new znode has its data, version, cversion and aversion 0, its length and no children."""
    create(client, "/a", b"xyz")
    data, found = node(client, "/a")
    assert data == b"xyz"
    assert (found.version, found.cversion, found.aversion, found.data_length, found.num_children) == (0, 0, 0, 3, 0)


def test_the_zxids_of_a_new_znode_are_those_of_its_creation(client: Any) -> None:
    """The czxid, mzxid and pzxid of a new znode are the zxid that the write was answered with."""
    written = create(client, "/a")
    found = stat(client, "/a")
    assert found.czxid == found.mzxid == found.pzxid == written.zxid > 0


def test_a_creation_is_answered_with_version_and_path(client: Any) -> None:
    """A creation has no error, no failed operation, data version 0 and the path as stored."""
    written = create(client, "/a")
    assert (written.error, written.failed_index, written.versions, written.paths) == (None, -1, (0,), ("/a",))


def test_creation_and_modification_time_start_equal(client: Any) -> None:
    """A new znode has ctime equal to mtime."""
    create(client, "/a")
    found = stat(client, "/a")
    assert found.ctime == found.mtime > 0


def test_a_persistent_znode_has_no_owner(client: Any) -> None:
    """The ephemeral owner of a persistent znode is 0."""
    create(client, "/a")
    assert stat(client, "/a").ephemeral_owner == 0


def test_an_ephemeral_znode_names_its_session(client: Any) -> None:
    """The ephemeral owner of an ephemeral znode is the id of the session that created it."""
    create(client, "/a", ephemeral=True)
    assert stat(client, "/a").ephemeral_owner == client.session_id


def test_a_new_child_changes_three_lines_of_its_parent(client: Any) -> None:
    """A creation moves its parent's pzxid to its own zxid, counts cversion and children up, and touches nothing else."""
    create(client, "/a", b"x")
    before = stat(client, "/a")
    written = create(client, "/a/b")
    assert stat(client, "/a") == before._replace(pzxid=written.zxid, cversion=1, num_children=1)


def test_a_grandchild_leaves_the_grandparent_alone(client: Any) -> None:
    """A creation changes no line of its parent's parent."""
    create(client, "/a")
    create(client, "/a/b")
    before = stat(client, "/a")
    create(client, "/a/b/c")
    assert stat(client, "/a") == before


def test_the_root_counts_its_children_too(client: Any) -> None:
    """The root has a stat like any other znode, and its children are counted in it."""
    create(client, "/a")
    delete(client, "/a")
    written = create(client, "/b")
    found = stat(client, "/")
    assert (found.pzxid, found.cversion, found.num_children) == (written.zxid, 3, 1)


def test_what_exists_is_not_created_again(client: Any) -> None:
    """Creating a path that is there fails with NodeExists and leaves the znode as it was."""
    create(client, "/a", b"first")
    before = node(client, "/a")
    written = create(client, "/a", b"second")
    assert (written.error, written.failed_index, written.versions, written.paths) == ("NodeExists", 0, (), ())
    assert node(client, "/a") == before


def test_a_creation_needs_its_parent(client: Any) -> None:
    """Creating a znode without a parent fails with NoNode."""
    assert create(client, "/a/b").error == "NoNode"
    assert client.exists(["/a", "/a/b"], watch=False) == [None, None]


def test_an_ephemeral_znode_has_no_children(client: Any) -> None:
    """Creating a child of an ephemeral znode fails with NoChildrenForEphemerals."""
    create(client, "/a", ephemeral=True)
    assert create(client, "/a/b").error == "NoChildrenForEphemerals"
    assert stat(client, "/a").num_children == 0


@pytest.mark.parametrize("name", [".", "..", "a\x00", "a\x1f", "a\x7f", "a\x9f", "\U0001f600", "\ue000", "\uffff", ""])
def test_some_names_are_no_names(client: Any, name: str) -> None:
    """A name that is empty, a dot, two dots, or holds a control or private character is answered with BadArguments."""
    create(client, "/a")
    assert create(client, f"/a/{name}").error == "BadArguments"
    assert client.children(["/a"], watch=False) == [()]


@pytest.mark.parametrize("name", ["...", ".a", "a b", "é", "\ud7ff", "{}", "_-"])
def test_most_names_are_names(client: Any, name: str) -> None:
    """Dots within a name, blanks, signs and letters of any alphabet are fine."""
    create(client, "/a")
    assert create(client, f"/a/{name}").paths == (f"/a/{name}",)
    assert client.children(["/a"], watch=False) == [(name,)]


@pytest.mark.parametrize(("op", "error"), [
    (Op("create", "/a//b"), "NoNode"),
    (Op("create", "/"), "NodeExists"),
    (Op("set", "/a/"), "BadArguments"),
    (Op("check", "/a//b"), "BadArguments"),
    (Op("delete", "/a/"), "NoNode"),
    (Op("delete", "//"), "NoNode"),
    (Op("create", "//"), "BadArguments"),
    (Op("create", "//a"), "BadArguments"),
    (Op("create", "//", sequential=True), "BadArguments"),
    (Op("create", "//a", ephemeral=True), "BadArguments"),
    (Op("create", "///"), "NoNode"),
    (Op("delete", "/\x00"), "BadArguments"),
    (Op("delete", "/b/\x00"), "BadArguments"),
    (Op("create", "/b/\x00"), "BadArguments"),
    (Op("create", "/b\x00/"), "BadArguments"),
    (Op("create", "/b/\x01"), "NoNode"),
    (Op("delete", "/\x01"), "NoNode"),
])  # fmt: skip
def test_a_malformed_path_is_the_servers_to_judge(client: Any, op: Op, error: str) -> None:
    """An operation on a path with an empty name or a control character in it gets the server's error."""
    create(client, "/a")
    assert transact(client, op).error == error


def test_a_malformed_path_reads_as_missing(client: Any) -> None:
    """Reading a path with an empty name or a null character in it finds nothing, however near a real one is."""
    create(client, "/a")
    for path in ("/a/", "//a", "/a\x00"):
        assert client.exists([path], watch=False) == [None]
        assert client.read([path], watch=False) == [None]
        assert client.children([path], watch=False) == [None]


def test_what_no_server_understands_is_not_sent(client: Any) -> None:
    """A path without a leading slash, a lone surrogate (both ValueError) and data that is no bytes (TypeError) take no zxid."""
    before = create(client, "/a").zxid
    with pytest.raises(ValueError, match="'a' is not the path"):
        create(client, "a")
    with pytest.raises(ValueError, match="'' is not the path"):
        client.read([""], watch=False)
    with pytest.raises(ValueError, match="'b' is not the path"):
        client.exists(["/a", "b"], watch=True)
    with pytest.raises(ValueError, match="leave out the lone surrogate"):
        create(client, "/\ud800")
    with pytest.raises(TypeError, match="data of /a must be bytes, not str"):
        put(client, "/a", "text")  # type: ignore[arg-type]
    assert create(client, "/b").zxid == before + 1


def test_the_tree_has_a_znode_named_zookeeper(zookeeper: Any, client: Any) -> None:
    """A znode `/zookeeper` that a client creates below a chroot is in the tree, with all that is below it."""
    create(client, "/zookeeper")
    create(client, "/zookeeper/a")
    assert list(zookeeper.tree()) == ["/zookeeper", "/zookeeper/a"]


def test_sequential_names_count_from_nought_in_ten_digits(client: Any) -> None:
    """A sequential name ends in ten digits that count the creations below its parent from 0."""
    create(client, "/q")
    assert [create(client, "/q/n-", sequential=True).paths[0] for _ in range(3)] == [
        "/q/n-0000000000", "/q/n-0000000001", "/q/n-0000000002",
    ]  # fmt: skip


def test_any_creation_counts_in_the_sequence(client: Any) -> None:
    """A creation of a plain name below the parent uses up a number, and so does one under another prefix."""
    create(client, "/q")
    create(client, "/q/plain")
    create(client, "/q/m-", sequential=True)
    assert create(client, "/q/n-", sequential=True).paths == ("/q/n-0000000002",)


def test_deletions_do_not_count_in_the_sequence(client: Any) -> None:
    """Deleting a child changes the parent's cversion, yet neither uses up a number nor gives one back."""
    create(client, "/q")
    create(client, "/q/n-", sequential=True)
    delete(client, "/q/n-0000000000")
    assert stat(client, "/q").cversion == 2
    assert create(client, "/q/n-", sequential=True).paths == ("/q/n-0000000001",)


def test_failed_creations_do_not_count_in_the_sequence(client: Any) -> None:
    """A creation that fails uses up no number, alone or rolled back with its transaction."""
    create(client, "/q")
    create(client, "/q/a")
    create(client, "/q/a")
    transact(client, Op("create", "/q/n-", sequential=True), Op("check", "/q", expected_version=9))
    assert create(client, "/q/n-", sequential=True).paths == ("/q/n-0000000001",)


def test_a_sequential_name_may_be_the_number_alone(client: Any) -> None:
    """A sequential path that ends in a slash gets a name of ten digits."""
    create(client, "/q")
    assert create(client, "/q/", sequential=True).paths == ("/q/0000000000",)


def test_a_sequential_znode_may_be_ephemeral(client: Any) -> None:
    """Sequential and ephemeral go together."""
    create(client, "/q")
    path = create(client, "/q/n-", ephemeral=True, sequential=True).paths[0]
    assert stat(client, path).ephemeral_owner == client.session_id


def test_a_set_changes_four_lines(client: Any) -> None:
    """A set moves mzxid to its own zxid, counts the version up, sets length and mtime, and touches nothing else."""
    create(client, "/a", b"x")
    create(client, "/a/b")
    before = stat(client, "/a")
    written = put(client, "/a", b"longer")
    data, after = node(client, "/a")
    assert data == b"longer"
    assert after == before._replace(mzxid=written.zxid, mtime=after.mtime, version=1, data_length=6)
    assert after.mtime >= before.mtime


def test_a_set_is_answered_with_the_new_version(client: Any) -> None:
    """Every set is answered with the data version that it made, one more each time, also when the data are the same."""
    create(client, "/a", b"x")
    assert [put(client, "/a", b"x").versions for _ in range(3)] == [(1,), (2,), (3,)]


def test_a_set_leaves_the_parent_alone(client: Any) -> None:
    """A set changes no line of the parent's stat."""
    create(client, "/a")
    create(client, "/a/b")
    before = stat(client, "/a")
    put(client, "/a/b", b"x")
    assert stat(client, "/a") == before


def test_a_set_at_the_expected_version_succeeds(client: Any) -> None:
    """A set that names the current version is done."""
    create(client, "/a")
    put(client, "/a")
    assert put(client, "/a", b"x", version=1).versions == (2,)


@pytest.mark.parametrize("version", [0, 2])
def test_a_set_at_another_version_fails(client: Any, version: int) -> None:
    """A set that names an older or newer version fails with BadVersion and changes nothing."""
    create(client, "/a")
    put(client, "/a")
    before = node(client, "/a")
    assert put(client, "/a", b"x", version=version).error == "BadVersion"
    assert node(client, "/a") == before


def test_a_set_needs_the_znode(client: Any) -> None:
    """A set on a missing znode fails with NoNode, whatever version it expects."""
    assert put(client, "/a").error == "NoNode"
    assert put(client, "/a", version=3).error == "NoNode"


def test_data_may_be_empty_again(client: Any) -> None:
    """A set to no data leaves the empty bytes and length 0."""
    create(client, "/a", b"x")
    put(client, "/a", b"")
    data, found = node(client, "/a")
    assert (data, found.data_length) == (b"", 0)


def test_a_deleted_znode_is_gone(client: Any) -> None:
    """A deleted znode is found by no read and listed below no parent."""
    create(client, "/a")
    written = delete(client, "/a")
    assert (written.error, written.versions, written.paths) == (None, (None,), ("/a",))
    assert client.exists(["/a"], watch=False) == [None]
    assert client.read(["/a"], watch=False) == [None]
    assert client.children(["/", "/a"], watch=False) == [(), None]


def test_a_deleted_child_changes_three_lines_of_its_parent(client: Any) -> None:
    """A deletion moves its parent's pzxid to its own zxid, counts cversion up and children down, and touches nothing else."""
    create(client, "/a")
    create(client, "/a/b")
    before = stat(client, "/a")
    written = delete(client, "/a/b")
    assert stat(client, "/a") == before._replace(pzxid=written.zxid, cversion=2, num_children=0)


def test_a_znode_with_children_stays(client: Any) -> None:
    """Deleting a znode that has children fails with NotEmpty."""
    create(client, "/a")
    create(client, "/a/b")
    assert delete(client, "/a").error == "NotEmpty"
    assert stat(client, "/a").num_children == 1


def test_a_deletion_looks_at_the_version_first(client: Any) -> None:
    """Deleting a znode that has children at a wrong version fails with BadVersion."""
    create(client, "/a")
    create(client, "/a/b")
    assert delete(client, "/a", version=4).error == "BadVersion"


def test_a_deletion_needs_the_znode(client: Any) -> None:
    """Deleting a missing znode fails with NoNode, whether or not its parent is there."""
    assert delete(client, "/a").error == "NoNode"
    assert delete(client, "/a/b", version=1).error == "NoNode"


def test_a_znode_created_again_is_a_new_one(client: Any) -> None:
    """A znode that is created again after its deletion has new zxids and starts at version and cversion 0."""
    create(client, "/a")
    create(client, "/a/b")
    put(client, "/a", b"x")
    delete(client, "/a/b")
    delete(client, "/a")
    written = create(client, "/a")
    found = stat(client, "/a")
    assert (found.czxid, found.mzxid, found.pzxid) == (written.zxid,) * 3
    assert (found.version, found.cversion) == (0, 0)


def test_children_are_sorted_names(client: Any) -> None:
    """The children of a znode are their bare names in sorted order; a leaf has none, a missing znode has no answer."""
    for path in ("/a", "/a/c", "/a/B", "/a/b", "/a/b/deep"):
        create(client, path)
    assert client.children(["/a", "/a/c", "/no"], watch=False) == [("B", "b", "c"), (), None]


def test_answers_come_in_the_order_of_the_paths(client: Any) -> None:
    """A call with many paths returns the answers in the order of the paths, missing and repeated paths included."""
    create(client, "/a", b"1")
    create(client, "/b", b"2")
    found = client.read(["/b", "/no", "/a", "/b"], watch=False)
    assert [znode and znode.data for znode in found] == [b"2", None, b"1", b"2"]


def test_no_paths_no_answers(client: Any) -> None:
    """A call with no paths or no transactions answers with nothing."""
    assert (
        client.read([], watch=True) == client.exists([], watch=False) == client.children([], watch=True) == client.write([]) == []
    )


def test_exists_and_read_agree(client: Any) -> None:
    """The stat that `exists` answers with is the one that `read` answers with."""
    create(client, "/a", b"x", ephemeral=True)
    assert stat(client, "/a") == node(client, "/a").stat


def test_reads_take_no_zxid(client: Any) -> None:
    """Two writes with only reads between them have neighbouring zxids."""
    first = create(client, "/a").zxid
    client.exists(["/a", "/b"], watch=True)
    client.read(["/a"], watch=True)
    client.children(["/"], watch=True)
    assert create(client, "/b").zxid == first + 1


def test_the_tree_is_all_there_is(zookeeper: Any, client: Any) -> None:
    """`tree` has every znode below the root, as read, in the order of the paths."""
    for path in ("/b", "/a", "/a/x", "/a-b"):
        create(client, path, path.encode())
    tree = zookeeper.tree()
    assert list(tree) == ["/a", "/a-b", "/a/x", "/b"]
    assert list(tree.values()) == client.read(list(tree), watch=False)


def test_the_tree_of_nothing_is_empty(zookeeper: Any) -> None:
    """A fresh ZooKeeper has no znode below the root."""
    assert zookeeper.tree() == {}
