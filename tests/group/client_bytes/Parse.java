import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;

/** Reads "subscription HEX" or "assignment HEX" in a line, and prints the entries or the exception of Kafka's own client. */
class Parse {
    static List<?> entries(String kind, ByteBuffer bytes) {
        return kind.equals("subscription")
            ? ConsumerProtocol.deserializeSubscription(bytes).topics()
            : ConsumerProtocol.deserializeAssignment(bytes).partitions();
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ", -1);
            String read;
            try {
                read = entries(words[0], ByteBuffer.wrap(HexFormat.of().parseHex(words[1]))).toString();
            } catch (RuntimeException problem) {
                read = problem.getClass().getSimpleName();
            }
            System.out.println(line + " " + read);
        }
    }
}
