package kafka.utils.timer;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.PriorityQueue;
import java.util.concurrent.ExecutorService;

/** Takes the place of Kafka 0.9's timer: it fires when it is asked to, the earliest task first. */
public class Timer {
  public static final List<Timer> ALL = Collections.synchronizedList(new ArrayList<>());
  static long sequence = 0;

  public static class Entry {
    public final TimerTask task;
    public final long at;
    final long number = sequence++;
    final TimerTaskEntry entry;

    Entry(TimerTask task) {
      this.task = task;
      this.at = task.expirationMs();
      this.entry = new TimerTaskEntry(task);
    }

    public boolean isCancelled() {
      return entry.cancelled();
    }
  }

  public static final Comparator<Entry> ORDER =
      Comparator.<Entry>comparingLong(entry -> entry.at).thenComparingLong(entry -> entry.number);
  public final PriorityQueue<Entry> queue = new PriorityQueue<>(ORDER);

  public Timer(ExecutorService executor, long tickMs, int wheelSize, long startMs) {
    ALL.add(this);
  }

  public void add(TimerTask task) {
    synchronized (Timer.class) {
      queue.add(new Entry(task));
    }
  }

  /** Only waits, as the thread that calls it does nothing else. */
  public boolean advanceClock(long timeoutMs) {
    try {
      Thread.sleep(timeoutMs);
    } catch (InterruptedException problem) {
      throw new RuntimeException(problem);
    }
    return false;
  }

  public int size() {
    synchronized (Timer.class) {
      return (int) queue.stream().filter(entry -> !entry.isCancelled()).count();
    }
  }

  /** The next task that is to fire, none of which has been cancelled. */
  public Entry peek() {
    synchronized (Timer.class) {
      while (!queue.isEmpty() && queue.peek().isCancelled()) queue.poll();
      return queue.peek();
    }
  }

  public void poll() {
    synchronized (Timer.class) {
      queue.poll();
    }
  }
}
