import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/** Reads one question in a line, and prints it with the assignment that Kafka's own assignor makes of it. */
class Assign {
    static final ObjectMapper JSON = new ObjectMapper();

    static AbstractPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    static TopicPartition partition(String text) {
        int dash = text.lastIndexOf('-');
        return new TopicPartition(text.substring(0, dash), Integer.parseInt(text.substring(dash + 1)));
    }

    static Subscription subscription(JsonNode member) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.get("owned").forEach(text -> owned.add(partition(text.asText())));
        String data = member.get("user_data").asText();
        ByteBuffer userData = data.isEmpty() ? null : ByteBuffer.wrap(HexFormat.of().parseHex(data));
        Subscription made = new Subscription(topics, userData, owned);
        made.setGroupInstanceId(Optional.empty());
        return made;
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ObjectNode question = (ObjectNode) JSON.readTree(line);
            Map<String, Integer> partitions = new LinkedHashMap<>();
            question.get("partitions").fields().forEachRemaining(e -> partitions.put(e.getKey(), e.getValue().asInt()));
            Map<String, Subscription> members = new LinkedHashMap<>();
            question.get("members").fields().forEachRemaining(e -> members.put(e.getKey(), subscription(e.getValue())));
            ObjectNode assigned = question.putObject("assigned");
            assignor(question.get("assignor").asText()).assign(partitions, members).forEach((member, list) -> {
                ArrayNode found = assigned.putArray(member);
                list.forEach(tp -> found.add(tp.topic() + "-" + tp.partition()));
            });
            question.get("members").forEach(member -> ((ObjectNode) member).remove("user_data"));
            System.out.println(question);
        }
    }
}
