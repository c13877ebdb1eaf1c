import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import kafka.cluster.Partition;
import kafka.server.FetchDataInfo;
import kafka.server.LogOffsetMetadata;
import kafka.server.ReplicaManager;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.ControlRecordType;
import org.apache.kafka.common.record.EndTransactionMarker;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.requests.ProduceResponse.PartitionResponse;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import scala.Function1;
import scala.Option;
import scala.Some;
import scala.jdk.javaapi.CollectionConverters;

/** The offsets topic's partitions in memory, and the replica manager that reads and writes them. */
class Log {
  static final int BUFFER = 1 << 18;

  static class Batch {
    long base;
    long producer;
    List<byte[][]> records;
    Boolean isCommit;
  }

  static class Held {
    TopicPartition partition;
    Function1<Object, ?> callback;
    long base;
  }

  final Harness harness;
  final Map<Integer, Long> ends = new HashMap<>();
  final Map<Integer, List<Batch>> batches = new HashMap<>();
  Errors error = Errors.NONE;
  List<Held> held = new ArrayList<>();
  /** While it is there, whoever reads a log waits for it, and says so first. */
  volatile CountDownLatch gate;
  volatile CountDownLatch entered;
  volatile int read;
  int appended;

  Log(Harness harness) {
    this.harness = harness;
  }

  void clear() {
    ends.clear();
    batches.clear();
    held = new ArrayList<>();
  }

  /** Appends a batch, or a marker; one that is not kept only says where it would have been. */
  Batch put(int partition, long producer, List<byte[][]> records, Boolean isCommit, boolean isKept) {
    Batch batch = new Batch();
    batch.base = ends.getOrDefault(partition, 0L);
    batch.producer = producer;
    batch.records = records;
    batch.isCommit = isCommit;
    if (isKept) {
      batches.computeIfAbsent(partition, key -> new ArrayList<>()).add(batch);
      ends.put(partition, batch.base + Math.max(1, records.size()));
    }
    return batch;
  }

  Batch take(int partition, MemoryRecords written) {
    List<byte[][]> records = new ArrayList<>();
    long producer = -1;
    for (RecordBatch batch : written.batches()) {
      if (batch.isTransactional()) producer = batch.producerId();
      for (Record record : batch) {
        byte[][] pair = {Harness.bytes(record.key()), Harness.bytes(record.value())};
        records.add(pair);
        harness.written(partition, pair[0], pair[1], producer);
      }
    }
    return put(partition, producer, records, null, !harness.mode.equals("fail"));
  }

  MemoryRecords contents(int partition) {
    ByteBuffer buffer = ByteBuffer.allocate(BUFFER);
    for (Batch batch : batches.getOrDefault(partition, List.of())) {
      if (batch.isCommit != null) {
        ControlRecordType type = batch.isCommit ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        EndTransactionMarker marker = new EndTransactionMarker(type, 0);
        MemoryRecords.writeEndTransactionalMarker(buffer, batch.base, 0L, 0, batch.producer, (short) 0, marker);
        continue;
      }
      MemoryRecordsBuilder builder = batch.producer >= 0
          ? MemoryRecords.builder(buffer, CompressionType.NONE, batch.base, batch.producer, (short) 0, 0, true)
          : MemoryRecords.builder(buffer, (byte) 2, CompressionType.NONE, TimestampType.CREATE_TIME, batch.base, 0L);
      for (byte[][] record : batch.records) builder.append(0L, record[0], record[1]);
      builder.close();
    }
    buffer.flip();
    return MemoryRecords.readableRecords(buffer);
  }

  // ---- how writes end

  void end(Held write, Errors result) {
    Map<TopicPartition, PartitionResponse> statuses = new HashMap<>();
    long base = result == Errors.NONE ? write.base : -1L;
    statuses.put(write.partition, new PartitionResponse(result, base, -1L, 0L));
    write.callback.apply(Coordinator.scalaMap(statuses));
  }

  void change(JsonNode step) {
    Errors result = Errors.forCode((short) Harness.number(step, "error", 0));
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
    scala.collection.Map<TopicPartition, MemoryRecords> entries = (scala.collection.Map<TopicPartition, MemoryRecords>) args[4];
    for (Map.Entry<TopicPartition, MemoryRecords> entry : CollectionConverters.asJava(entries).entrySet()) {
      Held write = new Held();
      write.partition = entry.getKey();
      write.callback = (Function1<Object, ?>) args[5];
      write.base = take(entry.getKey().partition(), entry.getValue()).base;
      if (harness.mode.equals("hold")) held.add(write);
      else end(write, harness.mode.equals("fail") ? error : Errors.NONE);
    }
  }

  // ---- what the coordinator calls

  ReplicaManager replicaManager() {
    Partition partition = Harness.stub(Partition.class, this::answerOfPartition);
    kafka.log.Log log = Harness.stub(kafka.log.Log.class, this::answerOfLog);
    return Harness.stub(ReplicaManager.class, call -> {
      Object[] args = call.getArguments();
      switch (call.getMethod().getName()) {
        case "getMagic":
          return new Some<Object>((byte) 2);
        case "appendRecords":
          append(args);
          return null;
        case "onlinePartition":
          appended = ((TopicPartition) args[0]).partition();
          return new Some<Object>(partition);
        case "getLog":
          read = ((TopicPartition) args[0]).partition();
          waitAtGate();
          return new Some<Object>(log);
        case "getLogEndOffset":
          return new Some<Object>(ends.getOrDefault(((TopicPartition) args[0]).partition(), 0L));
        default:
          return Mockito.RETURNS_DEFAULTS.answer(call);
      }
    });
  }

  void waitAtGate() throws InterruptedException {
    CountDownLatch closed = gate;
    if (closed == null) return;
    entered.countDown();
    closed.await();
  }

  Object answerOfPartition(InvocationOnMock call) throws Throwable {
    if (!call.getMethod().getName().equals("appendRecordsToLeader")) return Mockito.RETURNS_DEFAULTS.answer(call);
    take(appended, (MemoryRecords) call.getArguments()[0]);
    if (harness.mode.equals("fail")) throw error.exception();
    return null;
  }

  Object answerOfLog(InvocationOnMock call) throws Throwable {
    switch (call.getMethod().getName()) {
      case "logStartOffset":
        return 0L;
      case "logEndOffset":
        return ends.getOrDefault(read, 0L);
      case "read":
        return new FetchDataInfo(new LogOffsetMetadata(0L, 0L, 0), contents(read), false, Option.empty());
      default:
        return Mockito.RETURNS_DEFAULTS.answer(call);
    }
  }
}
