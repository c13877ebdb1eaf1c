"""`--zookeeper host:port[/chroot]`: which addresses are read, which roots are taken, and which are refused untouched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import make_acl, make_digest_acl

from kcontrol.core.effects import Op
from kcontrol.core.errors import UserError
from kcontrol.zookeeper.kazoo import KazooZooKeeper
from kcontrol.zookeeper.kazoo.root_protection import Address, make_empty, mark_server, open_zookeeper, parse_address
from kcontrol.zookeeper.server.embedded import EmbeddedZooKeeper
from tests.zookeeper.support import create, delete, node, put, stat

LEGAL_FORM = "host:port[,host:port...][/chroot]"


@pytest.fixture(scope="module")
def clean() -> Iterator[EmbeddedZooKeeper]:
    with EmbeddedZooKeeper() as embedded:
        yield embedded


@pytest.fixture
def everything(clean: EmbeddedZooKeeper) -> Iterator[KazooZooKeeper]:
    """The whole of that server; what a test leaves on it is deleted."""
    with KazooZooKeeper(clean.hosts) as zookeeper:
        yield zookeeper
        kazoo = KazooClient(clean.hosts, auth_data=[("digest", "boss:secret")])
        kazoo.start()
        for name in kazoo.get_children("/"):
            if name != "zookeeper":
                kazoo.delete(f"/{name}", recursive=True)
        kazoo.stop()
        kazoo.close()


def mzxids(zookeeper: KazooZooKeeper) -> dict[str, int]:
    client = zookeeper.connect()
    found, todo = {}, ["/"]
    while todo:
        path = todo.pop()
        found[path] = stat(client, path).mzxid
        todo += [f"{path.rstrip('/')}/{name}" for name in client.children([path], watch=False)[0] or ()]
    return found


def refused(address: str) -> str:
    """The one sentence with which an address is refused."""
    with pytest.raises(UserError) as refusal:
        open_zookeeper(address, seed=7).close()
    text = str(refusal.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert ". " not in text
    return text


# ------------------------------------------------------------ addresses


@pytest.mark.parametrize(("text", "address"), [
    ("localhost:2181", Address("localhost:2181", None)),
    ("10.0.0.1:2181/", Address("10.0.0.1:2181", "/")),
    ("a.b-c_d:1/kcontrol/x", Address("a.b-c_d:1", "/kcontrol/x")),
    ("a:1,b:65535/x", Address("a:1,b:65535", "/x")),
    ("[::1]:2181/x", Address("[::1]:2181", "/x")),
])  # fmt: skip
def test_legal_addresses_are_read(text: str, address: Address) -> None:
    """An address is hosts with ports and, behind the first slash, a chroot: none, the root, or a path."""
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "localhost", "localhost:", ":2181", "localhost:0", "localhost:65536", "localhost:x", "localhost:2181,", "a:1, b:2",
        "/chroot", "localhost:2181/a/", "localhost:2181//a", "localhost:2181/a/../b", "localhost:2181/\x1b[31m", "http://localhost:2181",
        "user@localhost:2181", "localhost:2181\n", "localhost:२", "::1:2181",
    ],
)  # fmt: skip
def test_the_error_of_an_illegal_address_has_the_legal_form(text: str) -> None:
    """Any other text is refused in one line that quotes the text, escaped, and shows the legal form."""
    with pytest.raises(UserError) as refusal:
        parse_address(text)
    assert (
        str(refusal.value)
        == f"{text!r} is not the address of a ZooKeeper: write {LEGAL_FORM}, for example localhost:2181/my-chroot."
    )
    assert str(refusal.value).isprintable()


# ------------------------------------------------------------ roots that are taken


@pytest.mark.zookeeper
def test_without_a_chroot_the_seed_names_it(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """On an empty ZooKeeper the root is `/kcontrol-<seed>`, and the marker says tool, version, seed and the root's owner."""
    with open_zookeeper(clean.hosts, seed=7) as ours:
        create(ours.connect(), "/brokers")
    assert sorted(mzxids(everything).keys() - {"/"} - {path for path in mzxids(everything) if path.startswith("/zookeeper")}) == [
        "/kcontrol-7", "/kcontrol-7/.kcontrol", "/kcontrol-7/brokers",
    ]  # fmt: skip
    marker = json.loads(node(everything.connect(), "/kcontrol-7/.kcontrol").data)
    assert marker.keys() == {"tool", "version", "seed", "owner"}
    assert (marker["tool"], marker["seed"]) == ("kcontrol", 7)


@pytest.mark.zookeeper
@pytest.mark.parametrize("chroot", ["/mine", "/deep/er/still"])
def test_a_new_chroot_is_made_and_marked_at_once(clean: EmbeddedZooKeeper, everything: KazooZooKeeper, chroot: str) -> None:
    """A chroot that is not there is created with its parents and its marker in one transaction."""
    open_zookeeper(clean.hosts + chroot, seed=7).close()
    client = everything.connect()
    assert stat(client, chroot).czxid == stat(client, f"{chroot}/.kcontrol").czxid


@pytest.mark.zookeeper
def test_an_empty_chroot_is_marked(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """A chroot that is there and empty is taken: it gets the marker."""
    create(everything.connect(), "/mine")
    open_zookeeper(f"{clean.hosts}/mine", seed=7).close()
    assert everything.connect().exists(["/mine/.kcontrol"], watch=False) != [None]


@pytest.mark.zookeeper
def test_a_marked_root_is_ours_again(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """A root with our marker is opened again with what is below it, whatever the seed, and opening writes nothing."""
    with open_zookeeper(f"{clean.hosts}/mine", seed=7) as ours:
        client = ours.connect()
        client.write([(Op("create", "/brokers"), Op("create", "/brokers/ids"), Op("create", "/controller"))])
    before = mzxids(everything)
    with open_zookeeper(f"{clean.hosts}/mine", seed=8) as ours:
        assert list(ours.tree()) == ["/brokers", "/brokers/ids", "/controller"]
    assert mzxids(everything) == before


# ------------------------------------------------------------ roots that are refused


def plant_cluster(client: Any, root: str) -> None:
    """What a Kafka cluster keeps in ZooKeeper, in short."""
    for path in ("/brokers", "/brokers/ids", "/brokers/ids/1", "/brokers/topics", "/controller", "/controller_epoch"):
        create(client, root + path, b"{}")


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    ("root", "address"), [("/kafka", "/kafka"), ("", ""), ("/kcontrol-7", "")], ids=["chroot", "no chroot", "default"]
)
def test_a_foreign_cluster_is_refused_unchanged(
    clean: EmbeddedZooKeeper, everything: KazooZooKeeper, root: str, address: str
) -> None:
    """A cluster without our marker is refused in one sentence that names what was found, and no znode's mzxid has changed."""
    client = everything.connect()
    if root:
        create(client, root)
    plant_cluster(client, root)
    before = mzxids(everything)
    text = refused(clean.hosts + address)
    assert f"{root}/controller" in text
    assert f"{root}/brokers/ids" in text
    assert "so nothing was written" in text
    assert mzxids(everything) == before


@pytest.mark.zookeeper
@pytest.mark.parametrize("path", ["/controller", "/brokers/ids"])
def test_half_a_cluster_is_a_cluster(clean: EmbeddedZooKeeper, everything: KazooZooKeeper, path: str) -> None:
    """One of `/controller` and `/brokers/ids` is enough to be refused."""
    client = everything.connect()
    for end in [index for index, letter in enumerate(path + "/") if letter == "/" and index]:
        create(client, path[:end])
    before = mzxids(everything)
    assert f"({path})" in refused(clean.hosts)
    assert mzxids(everything) == before


@pytest.mark.zookeeper
def test_beside_a_cluster_a_chroot_is_chosen_by_name(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """A new chroot beside a cluster is opened, as the error suggests, and the cluster's znodes do not change."""
    plant_cluster(everything.connect(), "")
    before = mzxids(everything)
    text = refused(clean.hosts)
    assert text.endswith(f"for example {clean.hosts}/kcontrol-7.")
    open_zookeeper(f"{clean.hosts}/kcontrol-7", seed=7).close()
    assert {path: mzxid for path, mzxid in mzxids(everything).items() if not path.startswith("/kcontrol-7")} == before


@pytest.mark.zookeeper
def test_other_data_is_refused_untouched(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """A root that holds anything at all without our marker is refused, and nothing is written."""
    client = everything.connect()
    create(client, "/app")
    create(client, "/app/config", b"x")
    before = mzxids(everything)
    assert refused(f"{clean.hosts}/app").startswith(f"The root /app of ZooKeeper {clean.hosts} holds data that is not kcontrol's")
    assert mzxids(everything) == before


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b"\xff", b"[]", b"{}", b'{"tool": "other"}', b'"kcontrol"', b"null", b'{"tool": "kcontrol", "owner": ""}'],
)
def test_another_marker_is_not_ours(clean: EmbeddedZooKeeper, everything: KazooZooKeeper, data: bytes) -> None:
    """A znode in the marker's place that does not say our name does not make a root ours."""
    client = everything.connect()
    create(client, "/app")
    create(client, "/app/.kcontrol", data)
    before = mzxids(everything)
    refused(f"{clean.hosts}/app")
    assert mzxids(everything) == before


@pytest.mark.zookeeper
def test_the_root_of_all_is_refused(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """`host:port/` is refused even where nothing is on that ZooKeeper, and nothing is written."""
    before = mzxids(everything)
    assert refused(f"{clean.hosts}/").endswith(f"choose another chroot, for example {clean.hosts}/kcontrol-7.")
    assert mzxids(everything) == before


@pytest.mark.zookeeper
def test_a_znode_with_data_is_no_empty_root(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """A chroot without children that holds data and no marker is refused, and nothing is written."""
    client = everything.connect()
    create(client, "/team")
    create(client, "/team/data", b"theirs")
    before = mzxids(everything)
    assert "holds data that is not kcontrol's" in refused(f"{clean.hosts}/team/data")
    assert mzxids(everything) == before


@pytest.mark.zookeeper
@pytest.mark.parametrize("chroot", ["/zookeeper", "/zookeeper/quota/x"])
def test_zookeepers_own_part_is_refused(clean: EmbeddedZooKeeper, everything: KazooZooKeeper, chroot: str) -> None:
    """No root lies in `/zookeeper`."""
    before = mzxids(everything)
    assert "is ZooKeeper's own part" in refused(clean.hosts + chroot)
    assert mzxids(everything) == before


# ------------------------------------------------------------ what is deleted below a root of ours


def emptied(address: str, seed: int = 7) -> list[str]:
    """What is left below a root that was opened and emptied."""
    with open_zookeeper(address, seed) as ours:
        make_empty(ours, seed)
        return list(ours.tree())


def leave_behind(address: str, *paths: str) -> None:
    """Create znodes as a lab does, and go away."""
    with open_zookeeper(address, seed=7) as ours:
        client = ours.connect()
        for path in paths:
            assert create(client, path).error is None


@pytest.mark.zookeeper
def test_what_an_earlier_run_created_is_deleted(
    clean: EmbeddedZooKeeper, everything: KazooZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every znode that was created through a root of ours is deleted, in as many transactions as it takes, whatever its data."""
    monkeypatch.setattr("kcontrol.zookeeper.kazoo.root_protection.LARGEST_TRANSACTION", 2)
    leave_behind(f"{clean.hosts}/mine", "/brokers", "/brokers/topics", "/brokers/topics/t", "/controller_epoch")
    put(everything.connect(), "/mine/controller_epoch", b"rewritten by another client")
    assert emptied(f"{clean.hosts}/mine") == []


@pytest.mark.zookeeper
@pytest.mark.parametrize(
    "path", ["/prod", "/brokers/topics/t", "/brokers/topics/t/partitions"], ids=["elsewhere", "Kafka's path", "below ours"]
)
def test_what_another_client_created_is_never_deleted(clean: EmbeddedZooKeeper, everything: KazooZooKeeper, path: str) -> None:
    """Where a root of ours holds a znode that another client created, even at a path of Kafka's, nothing is deleted at all."""
    ours = [p for p in ("/brokers", "/brokers/topics", "/brokers/topics/t") if p != path]
    leave_behind(f"{clean.hosts}/mine", *ours)
    create(everything.connect(), f"/mine{path}", b"theirs")
    before = mzxids(everything)
    with pytest.raises(UserError) as refusal:
        emptied(f"{clean.hosts}/mine")
    assert str(refusal.value) == (
        f"'/mine{path}' was not created by kcontrol, so nothing was deleted on ZooKeeper {clean.hosts}: "
        f"delete it yourself, or choose another chroot, for example {clean.hosts}/kcontrol-7."
    )
    assert mzxids(everything) == before


@pytest.mark.zookeeper
def test_the_znodes_of_another_root_of_ours_are_not_deleted(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """A root of ours below another one is not emptied with it: each root deletes what was created through itself."""
    leave_behind(f"{clean.hosts}/mine", "/brokers")
    leave_behind(f"{clean.hosts}/mine/deeper", "/brokers")
    before = mzxids(everything)
    with pytest.raises(UserError, match=r"^'/mine/deeper' and 2 more were not created by kcontrol"):
        emptied(f"{clean.hosts}/mine")
    assert mzxids(everything) == before


@pytest.mark.zookeeper
@pytest.mark.parametrize("change", [put, lambda client, path: create(client, f"{path}/new")], ids=["data", "child"])
def test_what_changes_between_look_and_deletion_is_not_deleted(
    clean: EmbeddedZooKeeper, everything: KazooZooKeeper, monkeypatch: pytest.MonkeyPatch, change: Callable[..., Any]
) -> None:
    """A znode that another client writes to, or below, after it was looked at fails the whole transaction of deletions."""
    leave_behind(f"{clean.hosts}/mine", "/brokers", "/controller_epoch")
    look = KazooZooKeeper.are_ours

    def late(zookeeper: KazooZooKeeper, paths: list[str]) -> list[bool]:
        answer = look(zookeeper, paths)
        change(everything.connect(), "/mine/brokers")
        return answer

    monkeypatch.setattr(KazooZooKeeper, "are_ours", late)
    with pytest.raises(UserError, match=r"^Another client writes below /mine of ZooKeeper"):
        emptied(f"{clean.hosts}/mine")
    assert {"/mine/brokers", "/mine/controller_epoch"} <= mzxids(everything).keys()


@pytest.mark.zookeeper
def test_ephemeral_znodes_are_not_deleted(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """Where a session of an earlier run still lives, nothing is deleted, and the sentence says to wait."""
    with open_zookeeper(f"{clean.hosts}/mine", seed=7) as earlier:
        create(earlier.connect(), "/controller", ephemeral=True)
        delete(everything.connect(), "/mine/.kcontrol/in-use")
        with pytest.raises(UserError, match=r"^Another lab uses ZooKeeper .* wait for its sessions to expire"):
            emptied(f"{clean.hosts}/mine")
        assert list(earlier.tree()) == ["/controller"]


@pytest.mark.zookeeper
def test_two_labs_do_not_share_a_root(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """A root that is open is refused, with another chroot as the example; once it is closed it can be opened."""
    with open_zookeeper(clean.hosts, seed=7):
        assert refused(clean.hosts) == (
            f"Another lab uses ZooKeeper {clean.hosts}/kcontrol-7, or its sessions have not expired yet: close it and wait "
            f"for its sessions to expire, or choose another chroot, for example {clean.hosts}/kcontrol-7-2."
        )
    open_zookeeper(clean.hosts, seed=7).close()


@pytest.mark.zookeeper
def test_the_cluster_of_a_lab_on_its_own_server_is_a_labs(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> None:
    """On a server that a lab has started, a cluster without a marker is another lab's, and the example is another chroot."""
    mark_server(clean.hosts, seed=7)
    client = everything.connect()
    create(client, "/kcontrol-7")
    plant_cluster(client, "/kcontrol-7")
    text = refused(f"{clean.hosts}/kcontrol-7")
    assert text.startswith(f"Another lab uses ZooKeeper {clean.hosts}/kcontrol-7, ")
    assert text.endswith(f"for example {clean.hosts}/kcontrol-7-2.")


# ------------------------------------------------------------ rights


@pytest.fixture
def guarded(clean: EmbeddedZooKeeper, everything: KazooZooKeeper) -> Callable[[Any], None]:
    """Create `/guarded` with the given rights for the world and all rights for another user."""

    def make(rights: Any) -> None:
        kazoo = KazooClient(clean.hosts, auth_data=[("digest", "boss:secret")])
        kazoo.start()
        kazoo.create("/guarded", acl=[make_digest_acl("boss", "secret", all=True), *rights])
        kazoo.stop()
        kazoo.close()

    return make


@pytest.mark.zookeeper
@pytest.mark.parametrize("rights", [[], [make_acl("world", "anyone", read=True)]], ids=["none", "read only"])
@pytest.mark.parametrize("chroot", ["/guarded", "/guarded/new"])
def test_a_chroot_without_rights_is_one_sentence(
    clean: EmbeddedZooKeeper, everything: KazooZooKeeper, guarded: Callable[[Any], None], rights: list[Any], chroot: str
) -> None:
    """A chroot that may not be read or written, or not be created, is refused in one sentence, and nothing is written."""
    guarded(rights)
    kazoo = KazooClient(clean.hosts, auth_data=[("digest", "boss:secret")])
    kazoo.start()
    before = (kazoo.exists("/guarded").mzxid, kazoo.exists("/guarded").cversion)
    text = refused(clean.hosts + chroot)
    assert "(NoAuth)" in text
    assert "choose a chroot with full rights" in text
    assert (kazoo.exists("/guarded").mzxid, kazoo.exists("/guarded").cversion) == before
    kazoo.stop()
    kazoo.close()


@pytest.mark.zookeeper
def test_a_client_without_rights_is_one_sentence(clean: EmbeddedZooKeeper, guarded: Callable[[Any], None]) -> None:
    """Without the safety rules, making a chroot and reading without rights say so in one sentence; a write gets NoAuth."""
    guarded([])
    with pytest.raises(UserError, match=r"refuses to create the chroot /guarded/new \(NoAuth\): choose another chroot\.$"):
        KazooZooKeeper(clean.hosts, "/guarded/new")
    with KazooZooKeeper(clean.hosts) as zookeeper:
        client = zookeeper.connect()
        with pytest.raises(UserError, match=r"^ZooKeeper refuses a request \(NoAuth\): choose a chroot with full rights\.$"):
            client.read(["/guarded"], watch=False)
        assert create(client, "/guarded/x").error == "NoAuth"
        assert delete(client, "/guarded").error is None  # deleting takes rights on the parent alone


@pytest.mark.slow
def test_an_unreachable_address_is_one_sentence() -> None:
    """An address without a listening process is refused in one sentence."""
    with pytest.raises(UserError, match=r"^No ZooKeeper can be reached at 127\.0\.0\.1:1 "):
        open_zookeeper("127.0.0.1:1", seed=7)
