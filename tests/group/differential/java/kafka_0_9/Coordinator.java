import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import kafka.common.OffsetAndMetadata;
import kafka.common.OffsetMetadata;
import kafka.common.OffsetMetadataAndError;
import kafka.common.TopicAndPartition;
import kafka.coordinator.DelayedHeartbeat;
import kafka.coordinator.GroupConfig;
import kafka.coordinator.GroupCoordinator;
import kafka.coordinator.GroupMetadata;
import kafka.coordinator.GroupMetadataManager;
import kafka.coordinator.GroupOverview;
import kafka.coordinator.GroupSummary;
import kafka.coordinator.JoinGroupResult;
import kafka.coordinator.MemberMetadata;
import kafka.coordinator.MemberSummary;
import kafka.coordinator.OffsetConfig;
import kafka.message.NoCompressionCodec$;
import kafka.server.ReplicaManager;
import kafka.utils.KafkaScheduler;
import kafka.utils.ZkUtils;
import kafka.utils.timer.Timer;
import org.apache.kafka.common.protocol.Errors;
import org.mockito.Mockito;
import scala.Tuple2;
import scala.collection.JavaConversions;
import scala.runtime.AbstractFunction2;
import scala.runtime.BoxedUnit;

/** Kafka 0.9.0.1's own coordinator; its clock is redirected in the byte code, its timer and its log are replaced. */
public class Coordinator extends Harness {
  static final int PATIENCE_S = 10;
  /** Two member ids that a map of Scala 2.11 walks in this order. */
  static final String[] VOTERS = {"c0-0000001", "c1-0100004"};
  final Log log = new Log(this);
  final ReplicaManager replicaManager = log.replicaManager();
  final ZkUtils zooKeeper = zooKeeper();
  final Set<String> expired = new HashSet<>();
  long retentionMs;
  GroupMetadataManager manager;
  GroupCoordinator coordinator;

  public static void main(String[] args) {
    new Coordinator().serve();
  }

  static ZkUtils zooKeeper() {
    scala.collection.mutable.HashMap<Object, Object> topics = new scala.collection.mutable.HashMap<>();
    topics.put("__consumer_offsets", new scala.collection.mutable.HashMap<Object, Object>());
    return Mockito.mock(ZkUtils.class, call -> call.getMethod().getName().equals("getPartitionAssignmentForTopics")
        ? topics : Mockito.RETURNS_DEFAULTS.answer(call));
  }

  @Override
  void fresh(JsonNode config) throws Exception {
    if (coordinator != null) coordinator.shutdown();
    Timer.ALL.clear();
    log.clear();
    expired.clear();
    retentionMs = longNumber(config, "retention_ms", 86400000L);
    OffsetConfig offsets = new OffsetConfig(number(config, "metadata_max", 4096), 5242880, retentionMs, 600000L,
        number(config, "partitions", 50), 104857600, (short) 1, NoCompressionCodec$.MODULE$, 5000, (short) -1);
    GroupConfig groups = new GroupConfig(number(config, "min_session", 6000), number(config, "max_session", 30000));
    manager = new GroupMetadataManager(0, offsets, replicaManager, zooKeeper);
    coordinator = new GroupCoordinator(0, groups, offsets, manager);
    coordinator.startup();
    settle();
    for (JsonNode partition : config.get("owned")) manager.addPartitionOwnership(partition.asInt());
  }

  @Override
  void advance(long to) {
    while (true) {
      Timer first = null;
      for (Timer timer : new ArrayList<>(Timer.ALL)) {
        boolean isEarlier = timer.peek() != null && (first == null || Timer.ORDER.compare(timer.peek(), first.peek()) < 0);
        if (isEarlier) first = timer;
      }
      if (first == null || first.peek().at > to) break;
      Timer.Entry next = first.peek();
      first.poll();
      VirtualClock.now = Math.max(VirtualClock.now, next.at);
      if (isSecondExpiry(next)) continue;
      try {
        ((Runnable) next.task).run();
      } catch (Throwable problem) {
        note("timer", problem);
      }
    }
    VirtualClock.now = Math.max(VirtualClock.now, to);
  }

  /** Whether a member's session has ended at this time already: docs/omissions.md declares that a second timer has no effect. */
  boolean isSecondExpiry(Timer.Entry entry) {
    if (!(entry.task instanceof DelayedHeartbeat)) return false;
    return !expired.add(System.identityHashCode(field(entry.task, "member")) + " " + entry.at);
  }

  @Override
  void look(ObjectNode seen) {
    seen.set("st", State.groups(manager));
    seen.set("tm", State.timers(manager));
    seen.set("own", State.numbers(field(manager, "ownedPartitions")));
    seen.set("load", State.numbers(field(manager, "loadingPartitions")));
  }

  @Override
  String vote(JsonNode members) {
    GroupMetadata group = new GroupMetadata("g", "consumer");
    int count = 0;
    for (JsonNode offered : members) {
      String member = VOTERS[count++];
      group.add(member, new MemberMetadata(member, "g", "c", "/h", 500, scalaList(protocols(offered))));
    }
    return group.selectProtocol();
  }

  // ---- steps

  @Override
  void act(JsonNode step) throws Exception {
    String group = text(step, "group", "g");
    String label = text(step, "as", null);
    switch (step.get("do").asText()) {
      case "join": join(step, group, label); break;
      case "sync": sync(step, group, label); break;
      case "heartbeat": heartbeat(step, group, label); break;
      case "leave": leave(step, group, label); break;
      case "commit": commit(step, group, label); break;
      case "fetch": fetch(step, group, label); break;
      case "list": list(label); break;
      case "describe": describe(group, label); break;
      case "append": log.change(step); break;
      case "extend": extend(step); break;
      case "elect": coordinator.handleGroupImmigration(step.get("partition").asInt()); settle(); break;
      case "resign": coordinator.handleGroupEmigration(step.get("partition").asInt()); settle(); break;
      case "cleanup": manager.kafka$coordinator$GroupMetadataManager$$deleteExpiredOffsets(); break;
      case "finish": case "tick": break;
      default: throw new IllegalArgumentException("no step is called " + step.get("do").asText());
    }
  }

  void join(JsonNode step, String group, String label) {
    VirtualClock.uuid = text(step, "uuid", "none");
    coordinator.handleJoinGroup(group, text(step, "member", ""), text(step, "client", "c"), text(step, "host", "/h"),
        number(step, "session", 500), text(step, "type", "consumer"), scalaList(protocols(step.get("protocols"))),
        callback((JoinGroupResult result) -> {
          ObjectNode answer = answer(label).put("error", result.errorCode()).put("generation", result.generationId());
          answer.put("member", result.memberId()).put("leader", result.leaderId()).put("protocol", result.subProtocol());
          ArrayNode members = answer.putArray("members");
          new TreeMap<>(JavaConversions.mapAsJavaMap(result.members())).forEach((member, metadata) ->
              members.add(JSON.createArrayNode().add(member).add(hex(metadata))));
        }));
  }

  void sync(JsonNode step, String group, String label) {
    Map<String, byte[]> assignment = new LinkedHashMap<>();
    for (String member : names(step.path("assignment"))) assignment.put(member, bytes(step.get("assignment").get(member).asText()));
    coordinator.handleSyncGroup(group, number(step, "gen", -1), text(step, "member", ""), scalaMap(assignment),
        new AbstractFunction2<byte[], Object, BoxedUnit>() {
          @Override
          public BoxedUnit apply(byte[] assigned, Object error) {
            answer(label).put("error", ((Number) error).shortValue()).put("assignment", hex(assigned));
            return BoxedUnit.UNIT;
          }
        });
  }

  void heartbeat(JsonNode step, String group, String label) {
    coordinator.handleHeartbeat(group, text(step, "member", ""), number(step, "gen", -1),
        callback((Object error) -> answer(label).put("error", ((Number) error).shortValue())));
  }

  void leave(JsonNode step, String group, String label) {
    coordinator.handleLeaveGroup(group, text(step.get("members").get(0), "member", ""),
        callback((Object error) -> answer(label).put("error", ((Number) error).shortValue())));
  }

  void commit(JsonNode step, String group, String label) {
    Map<TopicAndPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
    for (JsonNode offset : step.get("offsets")) {
      long expires = longNumber(offset, "commit", VirtualClock.now) + longNumber(step, "retention", retentionMs);
      OffsetMetadata value = new OffsetMetadata(offset.get("offset").asLong(), text(offset, "metadata", ""));
      offsets.put(partition(offset.get("tp").asText()), new OffsetAndMetadata(value, VirtualClock.now, expires));
    }
    coordinator.handleCommitOffsets(group, text(step, "member", ""), number(step, "gen", -1), scalaMap(offsets),
        callback((scala.collection.immutable.Map<TopicAndPartition, Object> result) -> {
          ObjectNode errors = answer(label).putObject("errors");
          JavaConversions.mapAsJavaMap(result).forEach((partition, error) ->
              errors.put(name(partition), ((Number) error).shortValue()));
        }));
  }

  void fetch(JsonNode step, String group, String label) {
    List<TopicAndPartition> partitions = new ArrayList<>();
    for (JsonNode name : step.path("partitions")) partitions.add(partition(name.asText()));
    scala.collection.Map<TopicAndPartition, OffsetMetadataAndError> found =
        coordinator.handleFetchOffsets(group, scalaList(partitions));
    ObjectNode offsets = answer(label).put("error", 0).putObject("offsets");
    JavaConversions.mapAsJavaMap(found).forEach((partition, data) ->
        offsets.putArray(name(partition)).add(data.offset()).add(data.metadata()).add(data.error()).add(-1));
  }

  void list(String label) {
    Tuple2<Errors, scala.collection.immutable.List<GroupOverview>> found = coordinator.handleListGroups();
    TreeMap<String, ArrayNode> groups = new TreeMap<>();
    for (GroupOverview group : JavaConversions.seqAsJavaList(found._2())) {
      groups.put(group.groupId(), JSON.createArrayNode().add(group.groupId()).add(group.protocolType()));
    }
    answer(label).put("error", found._1().code()).putArray("groups").addAll(groups.values());
  }

  void describe(String group, String label) {
    Tuple2<Errors, GroupSummary> found = coordinator.handleDescribeGroup(group);
    GroupSummary summary = found._2();
    ObjectNode answer = answer(label).put("error", found._1().code()).put("state", summary.state());
    answer.put("type", summary.protocolType()).put("protocol", summary.protocol());
    ObjectNode members = answer.putObject("members");
    for (MemberSummary member : JavaConversions.seqAsJavaList(summary.members())) {
      members.putArray(member.memberId()).addNull().add(member.clientId()).add(member.clientHost())
          .add(hex(member.metadata())).add(hex(member.assignment()));
    }
  }

  void extend(JsonNode step) {
    for (JsonNode batch : step.get("batches")) {
      for (JsonNode record : batch.path("records")) {
        byte[] value = record.get(1).isNull() ? null : bytes(record.get(1).asText());
        log.put(step.get("partition").asInt(), bytes(record.get(0).asText()), value);
      }
    }
  }

  void settle() throws Exception {
    CountDownLatch idle = new CountDownLatch(1);
    KafkaScheduler scheduler = (KafkaScheduler) field(manager, "scheduler");
    scheduler.schedule("marker", function(() -> {
      idle.countDown();
      return BoxedUnit.UNIT;
    }), 0L, -1L, TimeUnit.MILLISECONDS);
    if (!idle.await(PATIENCE_S, TimeUnit.SECONDS)) exceptions.add("the scheduler is stuck");
  }

  // ---- Scala

  static TopicAndPartition partition(String name) {
    int dash = name.lastIndexOf('-');
    return new TopicAndPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
  }

  static String name(TopicAndPartition partition) {
    return partition.topic() + "-" + partition.partition();
  }

  static <T> scala.collection.immutable.List<T> scalaList(List<T> list) {
    return JavaConversions.asScalaBuffer(list).toList();
  }

  static <K, V> scala.collection.immutable.Map<K, V> scalaMap(Map<K, V> map) {
    scala.collection.immutable.Map<K, V> found = scala.collection.immutable.Map$.MODULE$.<K, V>empty();
    for (Map.Entry<K, V> entry : map.entrySet()) found = found.$plus(new Tuple2<K, V>(entry.getKey(), entry.getValue()));
    return found;
  }
}
