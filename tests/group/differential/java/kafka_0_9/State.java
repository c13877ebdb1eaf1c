import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.TreeMap;
import java.util.TreeSet;
import kafka.common.OffsetAndMetadata;
import kafka.coordinator.DelayedHeartbeat;
import kafka.coordinator.DelayedJoin;
import kafka.coordinator.GroupMetadata;
import kafka.coordinator.GroupMetadataManager;
import kafka.coordinator.GroupTopicPartition;
import kafka.coordinator.MemberMetadata;
import kafka.utils.timer.Timer;
import scala.Tuple2;
import scala.collection.JavaConversions;

/** What is inside a manager's groups, its offsets, and the timers that can have an effect on them. */
class State {
  @SuppressWarnings("unchecked")
  static ObjectNode groups(GroupMetadataManager manager) {
    TreeMap<String, ObjectNode> shown = new TreeMap<>();
    for (GroupMetadata group : JavaConversions.asJavaIterable(manager.currentGroups())) shown.put(group.groupId(), group(group));
    Iterable<Tuple2<GroupTopicPartition, OffsetAndMetadata>> offsets = JavaConversions.asJavaIterable(
        (scala.collection.Iterable<Tuple2<GroupTopicPartition, OffsetAndMetadata>>) Harness.field(manager, "offsetsCache"));
    for (Tuple2<GroupTopicPartition, OffsetAndMetadata> entry : offsets) {
      OffsetAndMetadata value = entry._2();
      ObjectNode group = shown.computeIfAbsent(entry._1().group(), key -> Harness.JSON.createObjectNode().put("offsets_only", true));
      String partition = entry._1().topicPartition().topic() + "-" + entry._1().topicPartition().partition();
      String times = value.commitTimestamp() + "/" + value.expireTimestamp();
      group.with("offsets").putObject(partition).put("v", value.offset() + "/-1/" + value.metadata() + "/" + times);
    }
    ObjectNode all = Harness.JSON.createObjectNode();
    shown.forEach(all::set);
    return all;
  }

  static ObjectNode group(GroupMetadata group) {
    ObjectNode shown = Harness.JSON.createObjectNode();
    shown.put("state", group.currentState().getClass().getSimpleName().replace("$", ""));
    shown.put("generation", group.generationId()).put("leader", group.leaderId());
    shown.put("protocol", group.protocol()).put("type", group.protocolType());
    ArrayNode members = shown.putArray("members");
    for (MemberMetadata member : JavaConversions.seqAsJavaList(group.allMemberMetadata())) members.add(member(member));
    return shown;
  }

  static ArrayNode member(MemberMetadata member) {
    StringBuilder protocols = new StringBuilder();
    for (Tuple2<String, byte[]> protocol : JavaConversions.seqAsJavaList(member.supportedProtocols())) {
      protocols.append(protocol._1()).append('=').append(Harness.hex(protocol._2())).append(' ');
    }
    String waits = (member.awaitingJoinCallback() != null ? "J" : "") + (member.awaitingSyncCallback() != null ? "S" : "");
    return Harness.JSON.createArrayNode().add(member.memberId()).addNull().add(member.sessionTimeoutMs())
        .add(member.sessionTimeoutMs()).add(protocols.toString().trim()).add(Harness.hex(member.assignment())).add(waits);
  }

  /** The timers of groups and members that are still there. */
  static ArrayNode timers(GroupMetadataManager manager) {
    TreeSet<String> found = new TreeSet<>();
    for (Timer timer : Timer.ALL) {
      for (Timer.Entry entry : timer.queue) {
        String name = entry.isCancelled() ? null : name(manager, entry.task);
        if (name != null) found.add(name + " @" + entry.at);
      }
    }
    return Harness.array(found);
  }

  static String name(GroupMetadataManager manager, Object task) {
    if (!(task instanceof DelayedHeartbeat || task instanceof DelayedJoin)) return null;
    GroupMetadata group = (GroupMetadata) Harness.field(task, "group");
    if (manager.getGroup(group.groupId()) != group) return null;
    if (task instanceof DelayedJoin) return "join " + group.groupId();
    MemberMetadata member = (MemberMetadata) Harness.field(task, "member");
    boolean isThere = group.has(member.memberId()) && group.get(member.memberId()) == member;
    return isThere ? "session " + group.groupId() + " " + member.memberId() : null;
  }

  static ArrayNode numbers(Object set) {
    TreeSet<Integer> found = new TreeSet<>();
    for (Object item : JavaConversions.asJavaIterable((scala.collection.Iterable<?>) set)) found.add((Integer) item);
    return Harness.array(found);
  }
}
