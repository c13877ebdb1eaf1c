"""The offsets topic as a table and as a picture: the records of its log, their fields, compaction, and the result of a load."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from kcontrol import Lab
from kcontrol.core.effects import LogBatch
from kcontrol.core.errors import UserError
from kcontrol.core.model import TopicPartition
from kcontrol.group.group_loading import Loaded, read_batch
from kcontrol.group.model import Group, GroupState, OffsetAndMetadata
from kcontrol.group.offsets_topic_records import OffsetsTopicRecord, group_key, group_value, offset_key, offset_value

Opened = Callable[..., Lab]
MINUTE = {"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 60_000}
RECORDED = [name for name in Lab.recordings().index if "/group/" in name]


def billing(opened: Opened, release: str, codec: int = 0, **more: Any) -> Lab:
    """A group with two members that has committed offset 7 of t-0; `codec` compresses the batches of the offsets topic."""
    config = MINUTE | {"offsets.topic.compression.codec": codec}
    topics = {"__consumer_offsets": [[2, 1]], "t": [[1, 2], [2, 1]]}
    lab = opened(2, release, topics=topics, consumers=dict.fromkeys(("anna", "bert"), "billing"), config=config, **more)
    return lab.run(alive=True).commit("anna", "t-0", 7).run()


@pytest.mark.parametrize(("release", "versions"), [("0.9", (0, 1)), ("1.1", (1, 1)), ("2.8", (3, 3))])
def test_each_record_has_a_row(opened: Opened, release: str, versions: tuple[int, int]) -> None:
    """The row of a record has its kind, the versions of key and value, the group, the partition and the value in words."""
    table = billing(opened, release).tables.offsets_topic()
    assert table.iloc[-1][["kind", "key_version", "value_version", "group_id", "partition", "value"]].tolist() == [
        "offset", 1, versions[1], "billing", "t-0", "offset 7",
    ]  # fmt: skip
    group = table[table.kind == "group"].iloc[-1]
    assert (group.key_version, group.value_version, group.value.endswith("2 members")) == (2, versions[0], True)


def compressed(opened: Opened, release: str, codec: int) -> Lab:
    """Two offsets that anna has committed one after the other, and that have expired at once."""
    lab = billing(opened, release, codec=codec)
    return lab.commit("anna", "t-1", 9).run().run("121 s", alive=True)


@pytest.mark.parametrize("release", ["0.10.2", "1.1"])
def test_each_record_has_the_codec_and_the_size_of_its_batch(opened: Opened, release: str) -> None:
    """Both tombstones are in one gzip batch; without a codec 0.10.2 has a message for each, and 1.1 one batch for both."""
    plain, gzip = (compressed(opened, release, codec).tables.offsets_topic().iloc[-2:] for codec in (0, 1))
    first = plain.index[0]
    assert (plain.codec.tolist(), gzip.codec.tolist()) == (["none"] * 2, ["gzip"] * 2)
    assert gzip.batch.tolist() == [first] * 2 and gzip.batch_bytes.nunique() == 1
    assert plain.batch.tolist() == ([first, first + 1] if release == "0.10.2" else [first] * 2)
    sizes = plain.drop_duplicates("batch").batch_bytes
    assert sizes.tolist() == ([52, 52] if release == "0.10.2" else [111])


def test_the_picture_names_compressed_batches(opened: Opened) -> None:
    """The lines and the hints of compressed records have the codec and the size of their batch; other lines have neither."""
    plain, gzip = (billing(opened, "2.8", codec=codec) for codec in (0, 1))
    size = gzip.tables.offsets_topic().batch_bytes.iloc[-1]
    said = f"billing t-0: offset 7, in a gzip batch of {size} bytes"
    assert said in repr(gzip.offsets_partition()) and f"<title>{said}</title>" in gzip.offsets_partition().svg()
    assert " batch of " not in repr(plain.offsets_partition()) + plain.offsets_partition().svg()


def test_recorded_batches_have_their_sizes(opened: Opened) -> None:
    """Records of a recording have no codec, and the size of their message or batch in the format of the release."""
    old, new = (
        Lab.open(name).tables.offsets_topic() for name in ("0.9.0.1/group/commit-fetch-expire", "2.8.2/group/leader-leaves")
    )
    assert set(old.codec) == set(new.codec) == {"none"}
    assert (old.batch == old.index).all() and (old.batch_bytes == 26 + old.key_bytes + old.value_bytes.fillna(0)).all()
    assert new.batch.tolist() == [0, 1, 2, 3, 4, 4]
    assert new.batch_bytes.tolist()[2] == 61 + 1 + 3 + 1 + 21 + 1 + 24 + 1


@pytest.mark.parametrize("release", ["0.9", "2.8"])
def test_a_record_is_shown_field_by_field(opened: Opened, release: str) -> None:
    """The bytes of the fields of a record, one after the other, are the bytes of its key and of its value."""
    lab = billing(opened, release)
    log = lab.state["logs"]["2"]["__consumer_offsets-0"]["records"]
    for record in log:
        fields = lab.tables.offsets_topic(offset=record["offset"])
        assert ["".join(fields.loc[part].bytes) for part in ("key", "value")] == [record["key"], record["data"]]
    assert fields.loc["key"].value[["group", "topic", "partition"]].tolist() == ["billing", "t", 0]
    assert fields.loc["value"].value["offset"] == 7


@pytest.mark.parametrize(("release", "stays"), [("0.9", False), ("1.1", False), ("2.8", True)])
def test_the_expiry_fires_while_consumers_live(opened: Opened, release: str, *, stays: bool) -> None:
    """Time passes with heartbeats alone: up to 2.0 the offset of a live group expires, since 2.1 it stays (KIP-211)."""
    lab = billing(opened, release).run("121 s", alive=True)
    assert set(lab.tables.members().state) == {"Stable"}
    assert (len(lab.tables.offsets()) == 1) is stays
    values = lab.tables.offsets_topic()[lambda table: table.kind == "offset"].value.tolist()
    assert values == (["offset 7"] if stays else ["offset 7", "tombstone"])


def test_the_periodic_search_lets_a_run_end(opened: Opened) -> None:
    """A run of consumers without a time ends when they have heartbeats alone to send, although the search is due again."""
    lab = billing(opened, "0.9")
    assert lab.run(alive=True).records[-1].at_ms < 60_000


def test_a_tombstone_is_shown_without_a_value(opened: Opened) -> None:
    """Compaction drops the commit before a tombstone; the fields of the tombstone are those of its key."""
    lab = billing(opened, "0.9").run("121 s", alive=True)
    table = lab.tables.offsets_topic()
    last = table.index[-1]
    assert (
        table.compaction[last] == "keeps for delete.retention.ms" and table.compaction[last - 1] == f"drops: {last} has its key"
    )
    assert set(lab.tables.offsets_topic(offset=last).index.get_level_values("part")) == {"key"}


def test_the_picture_has_log_cache_and_load(opened: Opened) -> None:
    """The picture names each record of the log, the cache of the coordinator and the result of a load, also in its SVG."""
    lab = billing(opened, "0.9")
    shown = lab.offsets_partition()
    before = repr(shown).splitlines()
    assert before[-3:] == [
        f"  {len(before) - 4} billing t-0: offset 7",
        "cache of broker 2: billing: generation 2, 2 members; billing t-0: offset 7",
        "a load now finds: billing: generation 2, 2 members; billing t-0: offset 7",
    ]
    lab.run("121 s", alive=True)
    after = lab.offsets_partition()
    assert repr(after).splitlines()[-3:] == [
        f"  {len(before) - 3} billing t-0: tombstone",
        "cache of broker 2: billing: generation 2, 2 members",
        "a load now finds: billing: generation 2, 2 members",
    ]
    assert shown.svg().count("<rect") == after.svg().count("<rect") - 1
    assert 'class="absent"' in after.svg() and 'class="absent"' not in shown.svg()


@pytest.mark.parametrize("name", RECORDED)
def test_a_load_of_a_real_log_finds_the_cache(name: str) -> None:
    """A load of a real coordinator's log finds the offsets and groups that the responses of the coordinator imply."""
    # A generation that was not Stable when the recording ended has no record in the log, and is left out.
    run = Lab.open(name)
    unstored = set(run.tables.members().query("state != 'Stable'").index)
    cache, load = (
        {entry for entry in line.partition(": ")[2].split("; ") if entry.partition(":")[0] not in unstored}
        for line in repr(run.offsets_partition()).splitlines()[-2:]
    )
    assert cache == load and len(run.tables.offsets_topic()) > 0


def drawn(seed: int) -> list[OffsetsTopicRecord]:
    """A log of random commits, groups and tombstones of few keys."""
    chance, log = random.Random(seed), []
    for offset in range(30):
        group, tp = chance.choice("ab"), TopicPartition("t", chance.randrange(2))
        is_group, is_removed = chance.random() < 0.3, chance.random() < 0.3
        key = group_key(group) if is_group else offset_key(group, tp)
        state = Group(group, GroupState.EMPTY, generation=offset)
        data = group_value(state, {}, 3) if is_group else offset_value(OffsetAndMetadata(offset), 3)
        log.append(OffsetsTopicRecord(offset, 0, key, None if is_removed else data, offset))
    return log


def load(log: list[OffsetsTopicRecord]) -> tuple[Any, ...]:
    loaded = Loaded()
    for record in log:
        read_batch(loaded, LogBatch(record.base_offset, ((record.key, record.data),)))
    groups = {name: group for name, group in loaded.groups.items() if group is not None}
    return groups, {(name, tp): stored for name, held in loaded.offsets.items() for tp, stored in held.committed.items()}


def compact(log: list[OffsetsTopicRecord], *, keeps_tombstones: bool = True) -> list[OffsetsTopicRecord]:
    """The last record of each key in order; tombstones if `keeps_tombstones` (shouldRetainRecord of LogCleaner, 2.8)."""
    last = {record.key: record.offset for record in log}
    kept = [record for record in log if last[record.key] == record.offset]
    return [record for record in kept if keeps_tombstones or record.data is not None]


@pytest.mark.parametrize("keeps_tombstones", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_a_load_finds_the_same_after_compaction(seed: int, *, keeps_tombstones: bool) -> None:
    """A load of the compacted log, with or without its tombstones, finds what a load of the whole log finds."""
    log = drawn(seed)
    kept = compact(log, keeps_tombstones=keeps_tombstones)
    assert load(kept) == load(log) and len({record.key for record in kept}) == len(kept) < len(log)
    assert any(record.data is None for record in kept) is (keeps_tombstones and any(r.data is None for r in compact(log)))


def test_unknown_partitions_and_offsets_list_the_legal_ones(opened: Opened) -> None:
    """An unknown partition or offset is refused with the legal values, and so is a run without an offsets topic."""
    lab = billing(opened, "2.8")
    for call, said in (
        (lambda: lab.tables.offsets_topic("t-0"), "__consumer_offsets-0"),
        (lambda: lab.offsets_partition("nope"), "__consumer_offsets-0"),
        (lambda: lab.tables.offsets_topic(offset=99), "it has 0 and 1"),
        (lambda: opened(1).tables.offsets_topic(), "No broker has a log of __consumer_offsets"),
    ):
        with pytest.raises(UserError, match=said):
            call()


# ---------------------------------------------------------------- what the questions of chapter 15 say

KEYS = ["billing t-0", "billing t-2", "billing t-4"]


def rows(lab: Lab) -> tuple[dict[str, str], dict[str, str]]:
    """The committed offsets in the coordinator's cache, and those that a load of its log finds, by key."""
    shown = lab.offsets_partition()
    cache, load = ({key: value for key, value in held.items() if " " in key} for held in (shown.cache, shown.load))
    return cache, load


@pytest.mark.parametrize(("release", "left"), [("0.9", 0), ("0.10.2", 0), ("1.1", 0), ("2.4", 3), ("2.8", 3), ("3.9", 3)])
def test_a_quiet_weekend(release: str, left: int) -> None:
    """Up to 2.0 the offsets of a live group die at their time, since 2.1 they stay; the group is Stable in both cases."""
    # Source: deleteExpiredOffsets of GroupMetadataManager.scala (0.9.0), removeExpiredOffsets of GroupMetadata.scala (2.8).
    lab = Lab.play("quiet weekend", release)
    cache, load = rows(lab)
    assert (len(cache), cache, set(lab.tables.members().state)) == (left, load, {"Stable"})
    assert lab.tables.offsets_topic().value.tolist().count("tombstone") == 3 - left


def test_an_empty_group_dies_with_its_last_offset() -> None:
    """Under 2.8 the retention time begins when the last member leaves; the group's own tombstone is the last record."""
    # Source: cleanupGroupMetadata of GroupMetadataManager.scala (2.8), KIP-211.
    lab = Lab.play("quiet weekend", "2.8", until="Friday")
    for name in ("anna", "bert", "cleo"):
        lab.group.leave(name).run()
    lab.run("121 s", alive=True)
    table = lab.tables.offsets_topic()
    assert table.value.tolist()[-4:] == ["tombstone"] * 4 and table.kind.iloc[-1] == "group"
    assert (lab.offsets_partition().cache, lab.offsets_partition().load) == ({}, {})


def test_a_tombstone_that_fails() -> None:
    """If the append of the tombstones fails, the cache has lost the offsets, and the next coordinator's load finds them again."""
    # Source: cleanupGroupMetadata of GroupMetadataManager.scala (1.1), which logs the error.
    lab = Lab.play("quiet weekend", "1.1", until="Friday").run("100 s", alive=True)
    lab.fire_timer(2, "delete-expired-group-metadata").disks.fail_log_dir(2, "__consumer_offsets-0")
    lab.step(("begin", 2, "group-metadata-manager"))
    cache, load = rows(lab)
    assert (cache, list(load), lab.offsets_partition().broker) == ({}, KEYS, 2)
    lab.run(alive=True)
    cache, load = rows(lab)
    assert (list(cache), list(load), lab.offsets_partition().broker) == (KEYS, KEYS, 3)


def test_a_commit_that_timed_out_is_in_the_log() -> None:
    """After REQUEST_TIMED_OUT the cache has the earlier offset, and a load of the log finds the new one."""
    # Source: storeOffsets of GroupMetadataManager.scala (2.8), DelayedProduce.onExpiration.
    lab = Lab.play("quiet weekend", "2.8", until="Friday").freeze(3)
    lab.commit("anna", "t-0", 4300).run()
    cache, load = rows(lab)
    assert lab.state["consumers"]["anna"]["error"] == "REQUEST_TIMED_OUT"
    assert (cache["billing t-0"], load["billing t-0"]) == ("offset 4200", "offset 4300")


def damaged(opened: Opened, release: str, **more: Any) -> Lab:
    """A log with a group's offset, and after it a record without a key, which a producer has sent."""
    return billing(opened, release, **more).produce("__consumer_offsets-0", "odd").run()


@pytest.mark.parametrize(("release", "found"), [("0.9", "billing t-0: offset 7"), ("2.8", "nothing")])
def test_a_record_without_a_key_is_shown(opened: Opened, release: str, found: str) -> None:
    """Table and picture have the record's text, that the cleaner drops the record, and what a load finds, which ends there."""
    lab = damaged(opened, release)
    last = lab.tables.offsets_topic().iloc[-1]
    assert last[["kind", "value", "value_bytes", "compaction"]].tolist() == ["no key", "text 'odd'", 3, "drops: no key"]
    assert last[["key_version", "value_version", "group_id", "partition", "key_bytes"]].isna().all()
    *_, record, cache, load = repr(lab.offsets_partition()).splitlines()
    assert record.endswith(" no key: text 'odd', which compaction drops") and "billing t-0: offset 7" in cache
    assert load == f"a load now finds: {found}" and "or it has no key" in lab.offsets_partition().svg()
    with pytest.raises(UserError, match="has no key and no fields; its value is the text 'odd'"):
        lab.tables.offsets_topic(offset=last.name)
    # The load of the next coordinator finds what the picture has said.
    lab.kill(2).run()
    assert repr(lab.offsets_partition()).splitlines()[-2] == f"cache of broker 1: {found}"


def test_the_cleaner_drops_what_the_table_says(opened: Opened) -> None:
    """A cleaning of the closed segments removes each record whose row says that compaction drops the record."""
    lab = opened(1, topics={"__consumer_offsets": [[1]]}, consumers={"a": "g"}, config={"offsets.topic.segment.bytes": 400})
    lab.run(alive=True)
    for offset in range(4):
        lab.produce("__consumer_offsets-0", f"odd {offset}").run().commit("a", "t-0", offset).run()
    before = lab.tables.offsets_topic()
    kept = set(lab.disks.clean_log(1).tables.offsets_topic().index)
    assert set(before.index[before.compaction == "keeps"]) <= kept
    *closed, active = before.index[before.compaction == "drops: no key"]
    assert set(closed).isdisjoint(kept) and active in kept


def test_a_recording_is_compared_with_a_damaged_log() -> None:
    """A record without a key is no entry of the log that a recording of coordinators has."""
    lab = Lab.play("2.8.2/group/leader-leaves", runs=None).produce("__consumer_offsets-0", "odd").run()
    assert repr(lab.compare(Lab.open("2.8.2/group/leader-leaves"))).startswith("No difference")
