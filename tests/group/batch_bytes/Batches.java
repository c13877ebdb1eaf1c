import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.SimpleRecord;
import org.apache.kafka.common.record.TimestampType;

/** Prints for each line of records, "key:value key:-" in hexadecimal digits, the batch of Kafka's own classes in each format.
 *
 * Arguments: the name of the codec (CompressionType), then the formats. */
public class Batches {
    public static void main(String[] args) {
        CompressionType codec = CompressionType.valueOf(args[0]);
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            List<SimpleRecord> records = new ArrayList<>();
            for (String text : lines.nextLine().split(" ")) {
                String[] pair = text.split(":");
                records.add(new SimpleRecord(0L, bytes(pair[0]), pair[1].equals("-") ? null : bytes(pair[1])));
            }
            for (int i = 1; i < args.length; i++) {
                byte magic = Byte.parseByte(args[i]);
                SimpleRecord[] all = records.toArray(new SimpleRecord[0]);
                ByteBuffer batch = MemoryRecords.withRecords(magic, 0L, codec, TimestampType.CREATE_TIME, all).buffer();
                StringBuilder text = new StringBuilder();
                while (batch.hasRemaining()) text.append(String.format("%02x", batch.get()));
                System.out.println(text);
            }
        }
    }

    static byte[] bytes(String text) {
        byte[] found = new byte[text.length() / 2];
        for (int i = 0; i < found.length; i++) found[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        return found;
    }
}
