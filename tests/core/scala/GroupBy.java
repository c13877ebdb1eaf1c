// Prints the order in which Scala's groupBy lists the subsets of 1 to 9, and some longer ranges, one a line:
//   javac -cp scala-library-2.13.5.jar GroupBy.java && java -cp scala-library-2.13.5.jar:. GroupBy > group_by_2_13_5.txt
// The jar is org.scala-lang:scala-library:2.13.5, with which Kafka 2.8.2 is built.
import scala.collection.Iterator;
import scala.collection.mutable.ListBuffer;

public class GroupBy {
  public static void main(String[] args) {
    for (int mask = 1; mask < 1 << 9; mask++) {
      ListBuffer<Object> ids = new ListBuffer<>();
      for (int id = 1; id <= 9; id++) if ((mask & 1 << (id - 1)) != 0) ids.addOne(id);
      print(ids);
    }
    for (int[] range : new int[][] {{10, 20}, {0, 40}, {1000, 1040}}) {
      ListBuffer<Object> ids = new ListBuffer<>();
      for (int id = range[0]; id <= range[1]; id++) ids.addOne(id);
      print(ids);
    }
  }

  static void print(ListBuffer<Object> ids) {
    Iterator<Object> keys = ids.toList().groupBy(id -> id).keysIterator();
    StringBuilder line = new StringBuilder();
    while (keys.hasNext()) line.append(keys.next()).append(' ');
    System.out.println(line.toString().trim());
  }
}
