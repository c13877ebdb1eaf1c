import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import kafka.common.OffsetAndMetadata;
import kafka.coordinator.group.DelayedHeartbeat;
import kafka.coordinator.group.DelayedRebalance;
import kafka.coordinator.group.Empty$;
import kafka.coordinator.group.GroupConfig;
import kafka.coordinator.group.GroupCoordinator;
import kafka.coordinator.group.GroupMetadata;
import kafka.coordinator.group.GroupMetadataManager;
import kafka.coordinator.group.GroupOverview;
import kafka.coordinator.group.GroupSummary;
import kafka.coordinator.group.JoinGroupResult;
import kafka.coordinator.group.LeaveGroupResult;
import kafka.coordinator.group.LeaveMemberResponse;
import kafka.coordinator.group.MemberMetadata;
import kafka.coordinator.group.MemberSummary;
import kafka.coordinator.group.OffsetConfig;
import kafka.coordinator.group.SyncGroupResult;
import kafka.server.DelayedOperationPurgatory;
import kafka.server.ReplicaManager;
import kafka.utils.KafkaScheduler;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.common.message.LeaveGroupRequestData.MemberIdentity;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.OffsetFetchResponse.PartitionData;
import org.apache.kafka.common.utils.SystemTime;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/** Kafka 2.8.2's own GroupCoordinator and GroupMetadataManager on a virtual clock; only the log and the timers are replaced. */
public class Coordinator extends Harness {
  static class VirtualTime extends SystemTime {
    @Override
    public long milliseconds() {
      return VirtualClock.now;
    }

    @Override
    public long hiResClockMs() {
      return VirtualClock.now;
    }

    @Override
    public long nanoseconds() {
      return TimeUnit.MILLISECONDS.toNanos(VirtualClock.now);
    }

    @Override
    public void sleep(long ms) {}
  }

  static final int PATIENCE_S = 10;
  final VirtualTime time = new VirtualTime();
  final Log log = new Log(this);
  final ReplicaManager replicaManager = log.replicaManager();
  QueueTimer sessions;
  QueueTimer rebalances;
  GroupMetadataManager manager;
  GroupCoordinator coordinator;

  public static void main(String[] args) {
    new Coordinator().serve();
  }

  @Override
  void fresh(JsonNode config) {
    open();
    if (coordinator != null) coordinator.shutdown();
    sessions = new QueueTimer();
    rebalances = new QueueTimer();
    log.clear();
    int partitions = number(config, "partitions", 50);
    OffsetConfig offsets = new OffsetConfig(number(config, "metadata_max", 4096), 5242880,
        longNumber(config, "retention_ms", 604800000L), 600000L, partitions, 104857600, (short) 1,
        kafka.message.NoCompressionCodec$.MODULE$, 5000, (short) -1);
    GroupConfig groups = new GroupConfig(number(config, "min_session", 6000), number(config, "max_session", 1800000),
        number(config, "max_size", Integer.MAX_VALUE), number(config, "initial_delay", 3000));
    Metrics metrics = new Metrics();
    manager = new GroupMetadataManager(0, kafka.api.ApiVersion$.MODULE$.latestVersion(), offsets, replicaManager, time, metrics);
    coordinator = new GroupCoordinator(0, groups, offsets, manager,
        new DelayedOperationPurgatory<DelayedHeartbeat>("Heartbeat", sessions, 0, 1000, false, true),
        new DelayedOperationPurgatory<DelayedRebalance>("Rebalance", rebalances, 0, 1000, false, true), time, metrics);
    coordinator.startup(function(() -> (Object) partitions), false);
    for (JsonNode partition : config.get("owned")) manager.addPartitionOwnership(partition.asInt());
  }

  @Override
  void advance(long to) {
    while (true) {
      QueueTimer.Entry one = sessions.peek();
      QueueTimer.Entry other = rebalances.peek();
      boolean isSession = one != null && (other == null || QueueTimer.ORDER.compare(one, other) < 0);
      QueueTimer.Entry next = isSession ? one : other;
      if (next == null || next.at > to) break;
      (isSession ? sessions : rebalances).queue.poll();
      VirtualClock.now = Math.max(VirtualClock.now, next.at);
      try {
        next.task.run();
      } catch (Throwable problem) {
        note("timer", problem);
      }
    }
    VirtualClock.now = Math.max(VirtualClock.now, to);
  }

  @Override
  void look(ObjectNode seen) {
    seen.set("st", State.groups(manager));
    seen.set("tm", State.timers(manager, sessions, rebalances));
    seen.set("own", State.numbers(field(manager, "ownedPartitions")));
    seen.set("load", State.numbers(field(manager, "loadingPartitions")));
  }

  @Override
  String vote(JsonNode members) {
    GroupMetadata group = new GroupMetadata("g", Empty$.MODULE$, time);
    int count = 0;
    for (JsonNode offered : members) {
      group.add(new MemberMetadata("m" + count++, Option.empty(), "c", "/h", 500, 500, "consumer", scalaList(protocols(offered)),
          new byte[0]), null);
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
      case "list": list(step, label); break;
      case "describe": describe(group, label); break;
      case "delete": delete(step, label); break;
      case "offset_delete": deleteOffsets(step, group, label); break;
      case "end_txn": endTransaction(step); break;
      case "append": log.change(step); break;
      case "extend": extend(step); break;
      case "elect": elect(step); break;
      case "finish": finish(); break;
      case "resign": resign(step); break;
      case "cleanup": manager.cleanupGroupMetadata(); break;
      case "tick": break;
      default: throw new IllegalArgumentException("no step is called " + step.get("do").asText());
    }
  }

  void join(JsonNode step, String group, String label) {
    VirtualClock.uuid = text(step, "uuid", "none");
    coordinator.handleJoinGroup(group, text(step, "member", ""), option(step, "instance"),
        step.path("require_known").asBoolean(false), text(step, "client", "c"), text(step, "host", "/h"),
        number(step, "rebalance", 500), number(step, "session", 500), text(step, "type", "consumer"),
        scalaList(protocols(step.get("protocols"))), callback((JoinGroupResult result) -> {
          ObjectNode answer = answer(label).put("error", result.error().code()).put("generation", result.generationId());
          answer.put("member", result.memberId()).put("leader", result.leaderId());
          answer.put("type", State.text(result.protocolType()));
          answer.put("protocol", result.protocolName().isDefined() ? result.protocolName().get() : "");
          ArrayNode members = answer.putArray("members");
          for (JoinGroupResponseMember member : CollectionConverters.asJava(result.members())) {
            members.add(JSON.createArrayNode().add(member.memberId()).add(hex(member.metadata())));
          }
        }));
  }

  void sync(JsonNode step, String group, String label) {
    Map<String, byte[]> assignment = new LinkedHashMap<>();
    for (String member : names(step.path("assignment"))) assignment.put(member, bytes(step.get("assignment").get(member).asText()));
    coordinator.handleSyncGroup(group, number(step, "gen", -1), text(step, "member", ""), option(step, "type"),
        option(step, "protocol"), option(step, "instance"), scalaMap(assignment), callback((SyncGroupResult result) -> {
          ObjectNode answer = answer(label).put("error", result.error().code());
          answer.put("assignment", hex(result.memberAssignment()));
          answer.put("type", State.text(result.protocolType())).put("named", State.text(result.protocolName()));
        }));
  }

  void heartbeat(JsonNode step, String group, String label) {
    coordinator.handleHeartbeat(group, text(step, "member", ""), option(step, "instance"), number(step, "gen", -1),
        callback((Errors error) -> answer(label).put("error", error.code())));
  }

  void leave(JsonNode step, String group, String label) {
    List<MemberIdentity> members = new ArrayList<>();
    for (JsonNode member : step.get("members")) {
      String instance = text(member, "instance", null);
      members.add(new MemberIdentity().setMemberId(text(member, "member", "")).setGroupInstanceId(instance));
    }
    coordinator.handleLeaveGroup(group, scalaList(members), callback((LeaveGroupResult result) -> {
      ObjectNode answer = answer(label).put("error", result.topLevelError().code());
      ArrayNode codes = answer.putArray("members");
      ArrayNode named = answer.putArray("named");
      for (LeaveMemberResponse member : CollectionConverters.asJava(result.memberResponses())) {
        codes.add(member.error().code());
        named.add(JSON.createArrayNode().add(member.memberId()).add(State.text(member.groupInstanceId())));
      }
    }));
  }

  void commit(JsonNode step, String group, String label) {
    Option<Object> expires = step.hasNonNull("retention")
        ? new Some<>(VirtualClock.now + step.get("retention").asLong()) : Option.empty();
    Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
    for (JsonNode offset : step.get("offsets")) {
      int epoch = number(offset, "epoch", -1);
      offsets.put(partition(offset.get("tp").asText()), new OffsetAndMetadata(offset.get("offset").asLong(),
          epoch < 0 ? Optional.empty() : Optional.of(epoch), text(offset, "metadata", ""),
          longNumber(offset, "commit", VirtualClock.now), expires));
    }
    Function1<scala.collection.immutable.Map<TopicPartition, Errors>, BoxedUnit> done =
        callback(result -> codes(answer(label), result));
    String member = text(step, "member", "");
    int generation = number(step, "gen", -1);
    if (step.hasNonNull("producer")) {
      coordinator.handleTxnCommitOffsets(group, step.get("producer").asLong(), (short) 0, member, option(step, "instance"),
          generation, scalaMap(offsets), done);
    } else {
      coordinator.handleCommitOffsets(group, member, option(step, "instance"), generation, scalaMap(offsets), done);
    }
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  void fetch(JsonNode step, String group, String label) {
    Option asked = step.hasNonNull("partitions") ? new Some<>(partitions(step)) : Option.empty();
    Tuple2<Errors, scala.collection.Map<TopicPartition, PartitionData>> found =
        coordinator.handleFetchOffsets(group, step.path("require_stable").asBoolean(false), asked);
    ObjectNode answer = answer(label).put("error", found._1().code());
    ObjectNode offsets = answer.putObject("offsets");
    CollectionConverters.asJava(found._2()).forEach((partition, data) -> offsets.putArray(partition.toString()).add(data.offset)
        .add(data.metadata).add(data.error.code()).add(data.leaderEpoch.orElse(-1)));
  }

  void list(JsonNode step, String label) {
    List<String> states = new ArrayList<>();
    for (JsonNode state : step.path("states")) states.add(state.asText());
    Tuple2<Errors, scala.collection.immutable.List<GroupOverview>> found = coordinator.handleListGroups(scalaSet(states));
    TreeMap<String, ArrayNode> groups = new TreeMap<>();
    for (GroupOverview group : CollectionConverters.asJava(found._2())) {
      groups.put(group.groupId(), JSON.createArrayNode().add(group.groupId()).add(group.protocolType()).add(group.state()));
    }
    answer(label).put("error", found._1().code()).putArray("groups").addAll(groups.values());
  }

  void describe(String group, String label) {
    Tuple2<Errors, GroupSummary> found = coordinator.handleDescribeGroup(group);
    GroupSummary summary = found._2();
    ObjectNode answer = answer(label).put("error", found._1().code()).put("state", summary.state());
    answer.put("type", summary.protocolType()).put("protocol", summary.protocol());
    ObjectNode members = answer.putObject("members");
    for (MemberSummary member : CollectionConverters.asJava(summary.members())) {
      members.putArray(member.memberId()).add(State.text(member.groupInstanceId())).add(member.clientId()).add(member.clientHost())
          .add(hex(member.metadata())).add(hex(member.assignment()));
    }
  }

  void delete(JsonNode step, String label) {
    List<String> groups = new ArrayList<>();
    for (JsonNode group : step.get("groups")) groups.add(group.asText());
    codes(answer(label), coordinator.handleDeleteGroups(scalaSet(groups)));
  }

  void deleteOffsets(JsonNode step, String group, String label) {
    Tuple2<Errors, scala.collection.Map<TopicPartition, Errors>> found = coordinator.handleDeleteOffsets(group, partitions(step));
    codes(answer(label).put("error", found._1().code()), found._2());
  }

  static <K> void codes(ObjectNode answer, scala.collection.Map<K, Errors> found) {
    ObjectNode errors = answer.putObject("errors");
    CollectionConverters.asJava(found).forEach((key, error) -> errors.put(key.toString(), error.code()));
  }

  void endTransaction(JsonNode step) {
    int partition = step.get("partition").asInt();
    long producer = step.get("producer").asLong();
    boolean isCommit = step.get("commit").asBoolean();
    log.put(partition, producer, new ArrayList<>(), isCommit, true);
    List<Object> partitions = List.of(partition);
    manager.handleTxnCompletion(producer, scalaSet(partitions), isCommit);
  }

  void extend(JsonNode step) {
    for (JsonNode batch : step.get("batches")) {
      List<byte[][]> records = new ArrayList<>();
      for (JsonNode record : batch.path("records")) {
        records.add(new byte[][] {bytes(record.get(0).asText()), record.get(1).isNull() ? null : bytes(record.get(1).asText())});
      }
      Boolean isCommit = batch.has("marker") ? Boolean.valueOf(batch.get("marker").asBoolean()) : null;
      log.put(step.get("partition").asInt(), longNumber(batch, "producer", -1), records, isCommit, true);
    }
  }

  // ---- the thread that loads and unloads

  void elect(JsonNode step) throws Exception {
    boolean isSlow = step.path("slow").asBoolean(false);
    if (isSlow && log.gate == null) {
      log.entered = new CountDownLatch(1);
      log.gate = new CountDownLatch(1);
    }
    coordinator.onElection(step.get("partition").asInt(), step.get("epoch").asInt());
    if (!isSlow) {
      settle();
      return;
    }
    CountDownLatch idle = marker();
    while (log.entered.getCount() > 0 && idle.getCount() > 0) Thread.onSpinWait();
    if (log.entered.getCount() > 0) log.gate = null;
  }

  void finish() throws Exception {
    open();
    settle();
  }

  void open() {
    CountDownLatch gate = log.gate;
    log.gate = null;
    if (gate != null) gate.countDown();
  }

  void resign(JsonNode step) throws Exception {
    Option<Object> epoch = step.hasNonNull("epoch") ? new Some<>(step.get("epoch").asInt()) : Option.empty();
    coordinator.onResignation(step.get("partition").asInt(), epoch);
    settle();
  }

  /** A latch that opens when the scheduler has done all that it has been given so far. */
  CountDownLatch marker() {
    CountDownLatch idle = new CountDownLatch(1);
    KafkaScheduler scheduler = (KafkaScheduler) field(manager, "scheduler");
    scheduler.schedule("marker", function(() -> {
      idle.countDown();
      return BoxedUnit.UNIT;
    }), 0L, -1L, TimeUnit.MILLISECONDS);
    return idle;
  }

  void settle() throws Exception {
    if (!marker().await(PATIENCE_S, TimeUnit.SECONDS)) exceptions.add("the scheduler is stuck");
  }

  // ---- Scala

  static Option<String> option(JsonNode node, String field) {
    return Option.apply(text(node, field, null));
  }

  static TopicPartition partition(String name) {
    int dash = name.lastIndexOf('-');
    return new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
  }

  static scala.collection.immutable.List<TopicPartition> partitions(JsonNode step) {
    List<TopicPartition> found = new ArrayList<>();
    for (JsonNode name : step.get("partitions")) found.add(partition(name.asText()));
    return scalaList(found);
  }

  static <T> scala.collection.immutable.List<T> scalaList(List<T> list) {
    return CollectionConverters.asScala(list).toList();
  }

  static <T> scala.collection.immutable.Set<T> scalaSet(List<T> list) {
    return CollectionConverters.asScala(list).toSet();
  }

  static <K, V> scala.collection.immutable.Map<K, V> scalaMap(Map<K, V> map) {
    scala.collection.immutable.Map<K, V> found = scala.collection.immutable.Map$.MODULE$.empty();
    for (Map.Entry<K, V> entry : map.entrySet()) found = found.updated(entry.getKey(), entry.getValue());
    return found;
  }
}
