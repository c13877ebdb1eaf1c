import java.util.Comparator;
import java.util.PriorityQueue;
import kafka.utils.timer.Timer;
import kafka.utils.timer.TimerTask;
import kafka.utils.timer.TimerTaskEntry;

/** A timer that fires when it is asked to: the earliest task first, of two with one deadline the one that was added first. */
class QueueTimer implements Timer {
  static long sequence = 0;

  static class Entry {
    final long at;
    final long number = sequence++;
    final TimerTask task;
    final TimerTaskEntry entry;

    Entry(TimerTask task) {
      this.task = task;
      this.at = task.delayMs() + VirtualClock.now;
      this.entry = new TimerTaskEntry(task, at);
    }
  }

  static final Comparator<Entry> ORDER = Comparator.<Entry>comparingLong(entry -> entry.at).thenComparingLong(entry -> entry.number);
  final PriorityQueue<Entry> queue = new PriorityQueue<>(ORDER);

  @Override
  public synchronized void add(TimerTask task) {
    queue.add(new Entry(task));
  }

  @Override
  public boolean advanceClock(long timeoutMs) {
    return false;
  }

  @Override
  public int size() {
    return (int) queue.stream().filter(entry -> !entry.entry.cancelled()).count();
  }

  @Override
  public void shutdown() {}

  Entry peek() {
    while (!queue.isEmpty() && queue.peek().entry.cancelled()) queue.poll();
    return queue.peek();
  }
}
