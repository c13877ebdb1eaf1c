// Prints the hash of some of Kafka's replicas, one a line: topic, partition, broker, hash in signed 32 bits.
//   javac -cp scala-library-2.11.8.jar:kafka_2.11-0.10.2.2.jar ReplicaHashes.java
//   java -cp scala-library-2.11.8.jar:kafka_2.11-0.10.2.2.jar:. ReplicaHashes > replica_hashes_0_10_2_2.txt
import kafka.controller.PartitionAndReplica;

public class ReplicaHashes {
  public static void main(String[] args) {
    for (String topic : new String[] {"orders", "t", "Zürich"})
      for (int partition : new int[] {0, 1, 17})
        for (int broker : new int[] {0, 1, 5, 1001})
          System.out.println(
              topic + " " + partition + " " + broker + " " + new PartitionAndReplica(topic, partition, broker).hashCode());
  }
}
