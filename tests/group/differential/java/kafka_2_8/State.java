import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import kafka.common.OffsetAndMetadata;
import kafka.coordinator.group.CommitRecordMetadataAndOffset;
import kafka.coordinator.group.DelayedHeartbeat;
import kafka.coordinator.group.DelayedSync;
import kafka.coordinator.group.GroupMetadata;
import kafka.coordinator.group.GroupMetadataManager;
import kafka.coordinator.group.MemberMetadata;
import scala.Option;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;

/** What is inside a manager's groups, and the timers that can have an effect on them. */
class State {
  static ObjectNode groups(GroupMetadataManager manager) {
    ObjectNode all = Harness.JSON.createObjectNode();
    TreeMap<String, GroupMetadata> groups = new TreeMap<>();
    for (GroupMetadata group : CollectionConverters.asJava(manager.currentGroups())) groups.put(group.groupId(), group);
    groups.forEach((name, group) -> all.set(name, group(group)));
    return all;
  }

  static ObjectNode group(GroupMetadata group) {
    ObjectNode shown = Harness.JSON.createObjectNode();
    shown.put("state", group.currentState().toString());
    shown.put("generation", group.generationId());
    shown.put("leader", group.leaderOrNull());
    shown.put("protocol", text(group.protocolName()));
    shown.put("type", text(group.protocolType()));
    Option<?> since = (Option<?>) Harness.field(group, "currentStateTimestamp");
    shown.put("since", since.isDefined() ? ((Number) since.get()).longValue() : -1L);
    shown.put("newcomer", (Boolean) Harness.field(group, "newMemberAdded"));
    shown.set("pending", sorted(Harness.field(group, "pendingMembers")));
    shown.set("pending_sync", sorted(Harness.field(group, "pendingSyncMembers")));
    Option<?> topics = (Option<?>) Harness.field(group, "subscribedTopics");
    shown.set("topics", topics.isDefined() ? sorted(topics.get()) : Harness.JSON.nullNode());
    ObjectNode statics = shown.putObject("static");
    tree(Harness.field(group, "staticMembers")).forEach((instance, member) -> statics.put(instance, String.valueOf(member)));
    ArrayNode members = shown.putArray("members");
    for (MemberMetadata member : CollectionConverters.asJava(group.allMemberMetadata())) members.add(member(member));
    ObjectNode committed = shown.putObject("offsets");
    tree(Harness.field(group, "offsets")).forEach((partition, offset) -> committed.set(partition, stored(offset)));
    ObjectNode pending = shown.putObject("uncommitted");
    tree(Harness.field(group, "pendingOffsetCommits")).forEach((partition, offset) ->
        pending.putObject(partition).put("v", value((OffsetAndMetadata) offset)));
    shown.set("txn", transactions(group));
    return shown;
  }

  static ArrayNode member(MemberMetadata member) {
    StringBuilder protocols = new StringBuilder();
    for (Tuple2<String, byte[]> protocol : CollectionConverters.asJava(member.supportedProtocols())) {
      protocols.append(protocol._1()).append('=').append(Harness.hex(protocol._2())).append(' ');
    }
    String waits = (member.awaitingJoinCallback() != null ? "J" : "") + (member.awaitingSyncCallback() != null ? "S" : "");
    return Harness.JSON.createArrayNode().add(member.memberId()).add(text(member.groupInstanceId())).add(member.sessionTimeoutMs())
        .add(member.rebalanceTimeoutMs()).add(protocols.toString().trim()).add(Harness.hex(member.assignment()))
        .add(waits + (member.isNew() ? "N" : ""));
  }

  static ObjectNode transactions(GroupMetadata group) {
    ObjectNode shown = Harness.JSON.createObjectNode();
    tree(Harness.field(group, "pendingTransactionalOffsetCommits")).forEach((producer, entries) -> {
      ObjectNode held = shown.putObject(producer);
      tree(entries).forEach((partition, offset) -> held.set(partition, stored(offset)));
      if (held.isEmpty()) shown.remove(producer);
    });
    return shown;
  }

  static ObjectNode stored(Object offset) {
    CommitRecordMetadataAndOffset stored = (CommitRecordMetadataAndOffset) offset;
    ObjectNode shown = Harness.JSON.createObjectNode();
    shown.put("base", text(stored.appendedBatchOffset()));
    return shown.put("v", value(stored.offsetAndMetadata()));
  }

  static String value(OffsetAndMetadata value) {
    String expires = value.expireTimestamp().isDefined() ? String.valueOf(value.expireTimestamp().get()) : "";
    Object epoch = value.leaderEpoch().isPresent() ? value.leaderEpoch().get() : -1;
    return value.offset() + "/" + epoch + "/" + value.metadata() + "/" + value.commitTimestamp() + "/" + expires;
  }

  /** The timers of groups and members that are still there. */
  static ArrayNode timers(GroupMetadataManager manager, QueueTimer... timers) {
    TreeSet<String> found = new TreeSet<>();
    for (QueueTimer timer : timers) {
      for (QueueTimer.Entry entry : timer.queue) {
        GroupMetadata group = (GroupMetadata) Harness.field(entry.task, "group");
        Option<GroupMetadata> current = manager.getGroup(group.groupId());
        if (!entry.entry.cancelled() && current.isDefined() && current.get() == group) {
          String name = name(entry.task, group);
          if (name != null) found.add(name + " @" + entry.at);
        }
      }
    }
    return Harness.array(found);
  }

  static String name(Object task, GroupMetadata group) {
    if (task instanceof DelayedSync) return "sync " + group.groupId();
    if (!(task instanceof DelayedHeartbeat)) return "join " + group.groupId();
    String member = (String) Harness.field(task, "memberId");
    return group.has(member) || group.isPendingMember(member) ? "session " + group.groupId() + " " + member : null;
  }

  static String text(Option<?> value) {
    return value.isDefined() ? String.valueOf(value.get()) : null;
  }

  static ArrayNode sorted(Object set) {
    TreeSet<String> found = new TreeSet<>();
    for (Object item : CollectionConverters.asJava((scala.collection.Iterable<?>) set)) found.add(String.valueOf(item));
    return Harness.array(found);
  }

  static ArrayNode numbers(Object set) {
    TreeSet<Integer> found = new TreeSet<>();
    for (Object item : CollectionConverters.asJava((scala.collection.Iterable<?>) set)) found.add((Integer) item);
    return Harness.array(found);
  }

  static TreeMap<String, Object> tree(Object map) {
    TreeMap<String, Object> found = new TreeMap<>();
    for (Map.Entry<?, ?> entry : CollectionConverters.asJava((scala.collection.Map<?, ?>) map).entrySet()) {
      found.put(String.valueOf(entry.getKey()), entry.getValue());
    }
    return found;
  }
}
