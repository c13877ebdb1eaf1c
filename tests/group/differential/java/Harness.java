import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.mockito.Mockito;
import org.mockito.stubbing.Answer;
import scala.Tuple2;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Reads a sequence of steps in each line, plays it on the coordinator of one release, and writes a line with what was seen after each
 * step: answers (ans), records (app), exceptions (exc), groups (st), timers (tm), partitions that it owns (own) and loads (load).
 */
abstract class Harness {
  static final ObjectMapper JSON = new ObjectMapper();
  ObjectNode answers = JSON.createObjectNode();
  ArrayNode records = JSON.createArrayNode();
  ArrayNode exceptions = JSON.createArrayNode();
  /** How writes end: "ok" at once, "fail" with an error, "hold" when they are released. */
  String mode = "ok";

  /** An object of this class that answers as told, and keeps no list of its calls: their arguments would fill the memory. */
  static <T> T stub(Class<T> kind, Answer<?> answer) {
    return Mockito.mock(kind, Mockito.withSettings().stubOnly().defaultAnswer(answer));
  }

  abstract void fresh(JsonNode config) throws Exception;

  abstract void act(JsonNode step) throws Exception;

  abstract void advance(long to);

  abstract void look(ObjectNode seen);

  /** Which protocol a group chooses whose two members offer these. */
  abstract String vote(JsonNode members);

  void serve() {
    try {
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        out.println(reply(JSON.readTree(line)));
        out.flush();
      }
      System.exit(0);
    } catch (Throwable problem) {
      problem.printStackTrace();
      System.exit(1);
    }
  }

  ArrayNode reply(JsonNode asked) throws Exception {
    ArrayNode all = JSON.createArrayNode();
    exceptions = JSON.createArrayNode();
    for (JsonNode members : asked.path("votes")) all.add(vote(members));
    if (asked.has("votes")) return all;
    mode = "ok";
    VirtualClock.now = 0;
    fresh(asked.get("config"));
    for (JsonNode step : asked.get("steps")) all.add(play(step));
    return all;
  }

  ObjectNode play(JsonNode step) {
    answers = JSON.createObjectNode();
    records = JSON.createArrayNode();
    exceptions = JSON.createArrayNode();
    try {
      advance(step.get("at").asLong());
      act(step);
    } catch (Throwable problem) {
      note("step", problem);
    }
    advance(VirtualClock.now);
    ObjectNode seen = JSON.createObjectNode();
    seen.set("ans", answers);
    seen.set("app", records);
    if (exceptions.size() > 0) seen.set("exc", exceptions);
    look(seen);
    return seen;
  }

  /** Keeps an exception, with the first method of Kafka's that it came through. */
  void note(String where, Throwable problem) {
    String method = "";
    for (StackTraceElement frame : problem.getStackTrace()) {
      if (frame.getClassName().startsWith("kafka.")) {
        method = frame.getClassName() + "." + frame.getMethodName();
        break;
      }
    }
    exceptions.add(where + ": " + problem.getClass().getSimpleName() + ": " + problem.getMessage() + " @" + method);
  }

  ObjectNode answer(String label) {
    if (answers.has(label)) exceptions.add("answered twice: " + label);
    return answers.putObject(label).put("at", VirtualClock.now);
  }

  void written(int partition, byte[] key, byte[] value, long producer) {
    records.add(JSON.createArrayNode().add(partition).add(hex(key)).add(hex(value)).add(producer));
  }

  // ---- JSON

  static String text(JsonNode node, String field, String otherwise) {
    return node.hasNonNull(field) ? node.get(field).asText() : otherwise;
  }

  static int number(JsonNode node, String field, int otherwise) {
    return node.hasNonNull(field) ? node.get(field).asInt() : otherwise;
  }

  static long longNumber(JsonNode node, String field, long otherwise) {
    return node.hasNonNull(field) ? node.get(field).asLong() : otherwise;
  }

  static Iterable<String> names(JsonNode node) {
    return node::fieldNames;
  }

  static ArrayNode array(Iterable<?> items) {
    ArrayNode array = JSON.createArrayNode();
    for (Object item : items) array.add(JSON.valueToTree(item));
    return array;
  }

  static byte[] bytes(String hex) {
    byte[] found = new byte[hex.length() / 2];
    for (int i = 0; i < found.length; i++) found[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
    return found;
  }

  static byte[] bytes(ByteBuffer buffer) {
    if (buffer == null) return null;
    byte[] found = new byte[buffer.remaining()];
    buffer.duplicate().get(found);
    return found;
  }

  static String hex(byte[] bytes) {
    if (bytes == null) return null;
    StringBuilder found = new StringBuilder();
    for (byte one : bytes) found.append(Character.forDigit((one >> 4) & 15, 16)).append(Character.forDigit(one & 15, 16));
    return found.toString();
  }

  // ---- Scala

  static <T> AbstractFunction1<T, BoxedUnit> callback(Consumer<T> consumer) {
    return new AbstractFunction1<T, BoxedUnit>() {
      @Override
      public BoxedUnit apply(T value) {
        consumer.accept(value);
        return BoxedUnit.UNIT;
      }
    };
  }

  static <T> AbstractFunction0<T> function(Supplier<T> supplier) {
    return new AbstractFunction0<T>() {
      @Override
      public T apply() {
        return supplier.get();
      }
    };
  }

  static List<Tuple2<String, byte[]>> protocols(JsonNode list) {
    List<Tuple2<String, byte[]>> found = new ArrayList<>();
    for (JsonNode protocol : list) found.add(new Tuple2<>(protocol.get(0).asText(), bytes(protocol.get(1).asText())));
    return found;
  }

  /** A private field of an object, by its name in the Scala source. */
  static Object field(Object object, String name) {
    try {
      for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
        for (Field field : type.getDeclaredFields()) {
          if (field.getName().equals(name) || field.getName().endsWith("$$" + name)) {
            field.setAccessible(true);
            return field.get(object);
          }
        }
      }
    } catch (IllegalAccessException problem) {
      throw new RuntimeException(problem);
    }
    throw new RuntimeException("there is no field " + name + " in " + object.getClass());
  }
}
