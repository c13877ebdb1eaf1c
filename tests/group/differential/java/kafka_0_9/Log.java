import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import kafka.api.ProducerResponseStatus;
import kafka.cluster.Partition;
import kafka.cluster.Replica;
import kafka.common.TopicAndPartition;
import kafka.log.FileMessageSet;
import kafka.log.LogManager;
import kafka.log.LogSegment;
import kafka.message.ByteBufferMessageSet;
import kafka.message.Message;
import kafka.message.MessageAndOffset;
import kafka.message.MessageSet;
import kafka.message.NoCompressionCodec$;
import kafka.server.FetchDataInfo;
import kafka.server.LogOffsetMetadata;
import kafka.server.ReplicaManager;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import scala.Function1;
import scala.Some;
import scala.collection.JavaConversions;

/** The offsets topic's partitions in memory, and the replica manager that reads and writes them. */
class Log {
  static class Held {
    TopicAndPartition partition;
    Function1<Object, ?> callback;
    long base;
  }

  final Harness harness;
  final Map<Integer, Long> ends = new HashMap<>();
  final Map<Integer, List<Message>> messages = new HashMap<>();
  final Map<Integer, Partition> partitions = new HashMap<>();
  short error = 0;
  List<Held> held = new ArrayList<>();
  volatile int read;

  Log(Harness harness) {
    this.harness = harness;
  }

  void clear() {
    ends.clear();
    messages.clear();
    held = new ArrayList<>();
  }

  void put(int partition, byte[] key, byte[] value) {
    messages.computeIfAbsent(partition, number -> new ArrayList<>()).add(new Message(value, key));
    ends.merge(partition, 1L, Long::sum);
  }

  /** Appends what the coordinator writes, unless writes fail; returns where it begins. */
  long take(int partition, MessageSet written) {
    long base = ends.getOrDefault(partition, 0L);
    for (MessageAndOffset item : JavaConversions.asJavaIterable(written)) {
      byte[] key = Harness.bytes(item.message().key());
      byte[] value = item.message().isNull() ? null : Harness.bytes(item.message().payload());
      harness.written(partition, key, value, -1);
      if (!harness.mode.equals("fail")) put(partition, key, value);
    }
    return base;
  }

  void end(Held write, short result) {
    Map<TopicAndPartition, ProducerResponseStatus> statuses = new HashMap<>();
    statuses.put(write.partition, new ProducerResponseStatus(result, result == 0 ? write.base : -1L));
    write.callback.apply(Coordinator.scalaMap(statuses));
  }

  void change(JsonNode step) {
    short result = (short) Harness.number(step, "error", 0);
    if (!step.get("mode").asText().equals("release")) {
      harness.mode = step.get("mode").asText();
      error = result;
      return;
    }
    int count = Math.min(Harness.number(step, "only", held.size()), held.size());
    if (count == held.size()) harness.mode = "ok";
    List<Held> now = new ArrayList<>(held.subList(0, count));
    held = new ArrayList<>(held.subList(count, held.size()));
    for (Held write : now) {
      try {
        end(write, result);
      } catch (RuntimeException problem) {
        harness.note("step", problem);
      }
    }
  }

  @SuppressWarnings("unchecked")
  void append(Object[] args) {
    scala.collection.Map<TopicAndPartition, MessageSet> entries = (scala.collection.Map<TopicAndPartition, MessageSet>) args[3];
    for (Map.Entry<TopicAndPartition, MessageSet> entry : JavaConversions.mapAsJavaMap(entries).entrySet()) {
      Held write = new Held();
      write.partition = entry.getKey();
      write.callback = (Function1<Object, ?>) args[4];
      write.base = take(entry.getKey().partition(), entry.getValue());
      if (harness.mode.equals("hold")) held.add(write);
      else end(write, harness.mode.equals("fail") ? error : 0);
    }
  }

  // ---- what the coordinator calls

  ReplicaManager replicaManager() {
    LogManager logs = logManager();
    return Harness.stub(ReplicaManager.class, call -> {
      Object[] args = call.getArguments();
      switch (call.getMethod().getName()) {
        case "logManager":
          return logs;
        case "appendMessages":
          append(args);
          return null;
        case "getPartition":
          return new Some<Object>(partitions.computeIfAbsent((Integer) args[1], this::partition));
        default:
          return Mockito.RETURNS_DEFAULTS.answer(call);
      }
    });
  }

  LogManager logManager() {
    LogSegment segment = Harness.stub(LogSegment.class, call ->
        call.getMethod().getName().equals("baseOffset") ? (Object) 0L : Mockito.RETURNS_DEFAULTS.answer(call));
    FileMessageSet contents = Harness.stub(FileMessageSet.class, call ->
        call.getMethod().getName().equals("readInto") ? readInto((ByteBuffer) call.getArguments()[0])
            : Mockito.RETURNS_DEFAULTS.answer(call));
    kafka.log.Log log = Harness.stub(kafka.log.Log.class, call -> {
      switch (call.getMethod().getName()) {
        case "logSegments":
          return Coordinator.scalaList(List.of(segment));
        case "read":
          return new FetchDataInfo(new LogOffsetMetadata(0L, 0L, 0), contents);
        default:
          return Mockito.RETURNS_DEFAULTS.answer(call);
      }
    });
    return Harness.stub(LogManager.class, call -> {
      if (!call.getMethod().getName().equals("getLog")) return Mockito.RETURNS_DEFAULTS.answer(call);
      read = ((TopicAndPartition) call.getArguments()[0]).partition();
      return new Some<Object>(log);
    });
  }

  ByteBuffer readInto(ByteBuffer buffer) {
    List<Message> found = messages.getOrDefault(read, new ArrayList<>());
    AtomicLong first = new AtomicLong(0);
    buffer.put(new ByteBufferMessageSet(NoCompressionCodec$.MODULE$, first, Coordinator.scalaList(found)).buffer().duplicate());
    buffer.flip();
    return buffer;
  }

  Partition partition(int number) {
    Replica replica = Harness.stub(Replica.class, call -> call.getMethod().getName().equals("highWatermark")
        ? new LogOffsetMetadata(ends.getOrDefault(number, 0L), 0L, 0) : Mockito.RETURNS_DEFAULTS.answer(call));
    return Harness.stub(Partition.class, call -> answerOfPartition(call, number, replica));
  }

  Object answerOfPartition(InvocationOnMock call, int number, Replica replica) throws Throwable {
    String method = call.getMethod().getName();
    if (method.equals("leaderReplicaIfLocal")) return new Some<Object>(replica);
    if (method.startsWith("appendMessagesToLeader$default")) return 0;
    if (!method.equals("appendMessagesToLeader")) return Mockito.RETURNS_DEFAULTS.answer(call);
    take(number, (MessageSet) call.getArguments()[0]);
    if (harness.mode.equals("fail")) throw new RuntimeException("the append fails");
    return null;
  }
}
