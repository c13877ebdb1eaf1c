/** The time that a sequence says, and what the next member id ends with. Patch makes Kafka's classes ask here. */
public class VirtualClock {
  public static volatile long now = 0;
  public static volatile String uuid = "none";

  public static long now() {
    return now;
  }

  public static String uuid() {
    return uuid;
  }
}
