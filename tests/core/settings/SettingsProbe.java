import java.lang.reflect.*;
import java.util.*;

/** Prints, for every setting and text, what one release of Kafka makes of it: a value, or that it refuses. */
public class SettingsProbe {
    static final String[][] BROKER = {  // name, getter
        {"unclean.leader.election.enable", "uncleanLeaderElectionEnable"},
        {"delete.topic.enable", "deleteTopicEnable"},
        {"auto.leader.rebalance.enable", "autoLeaderRebalanceEnable"},
        {"zookeeper.session.timeout.ms", "zkSessionTimeoutMs"},
        {"replica.lag.time.max.ms", "replicaLagTimeMaxMs"},
        {"controlled.shutdown.max.retries", "controlledShutdownMaxRetries"},
        {"controlled.shutdown.retry.backoff.ms", "controlledShutdownRetryBackoffMs"},
        {"leader.imbalance.per.broker.percentage", "leaderImbalancePerBrokerPercentage"},
        {"leader.imbalance.check.interval.seconds", "leaderImbalanceCheckIntervalSeconds"},
        {"min.insync.replicas", "minInSyncReplicas"},
        {"controller.socket.timeout.ms", "controllerSocketTimeoutMs"},
    };
    static final String[] TOPIC = {"unclean.leader.election.enable", "min.insync.replicas", "segment.bytes", "delete.retention.ms", "no.such.setting"};
    static final String[] TEXTS = {"true", "false", "True", "FALSE", " true ", "yes", "no", "0", "1", "-1", "-5", "+7", " 7 ", "7.0", "7.5", "1e3",
        "1_000", "0x10", "x", "", "499", "500", "2147483647", "2147483648", "9223372036854775807", "9223372036854775808", "-2147483648"};

    static Object make(Properties p) throws Throwable {
        Class<?> c = Class.forName("kafka.server.KafkaConfig");
        try {
            try { return c.getMethod("fromProps", Properties.class).invoke(null, p); }
            catch (NoSuchMethodException e) { return c.getConstructor(Properties.class).newInstance(p); }
        } catch (InvocationTargetException e) { throw e.getCause(); }
    }

    static Object validateTopic(Properties p) throws Throwable {
        String[] names = {"org.apache.kafka.storage.internals.log.LogConfig", "kafka.log.LogConfig"};
        for (String name : names) {
            Class<?> c;
            try { c = Class.forName(name); } catch (ClassNotFoundException e) { continue; }
            try {
                for (Method m : c.getMethods())
                    if (m.getName().equals("validate") && m.getParameterCount() == 1 && Modifier.isStatic(m.getModifiers())) { m.invoke(null, p); return "ok"; }
                Object module = Class.forName(name + "$").getField("MODULE$").get(null);
                for (Method m : module.getClass().getMethods())
                    if (m.getName().equals("validate") && m.getParameterCount() == 1) { m.invoke(module, p); return "ok"; }
            } catch (InvocationTargetException e) { throw e.getCause(); }
        }
        return "no topic settings";
    }

    static String quote(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char ch : String.valueOf(s).toCharArray()) { if (ch == '"' || ch == '\\') b.append('\\'); b.append(ch < ' ' ? ' ' : ch); }
        return b.append('"').toString();
    }

    static void row(String scope, String name, String text, String answer, String how) {
        System.out.println("{\"scope\": " + quote(scope) + ", \"name\": " + quote(name) + ", \"text\": " + quote(text) + ", \"answer\": " + quote(answer) + ", \"said\": " + quote(how) + "}");
    }

    static String show(Object v) throws Exception {
        if (v != null && v.getClass().getName().startsWith("java.lang")) return String.valueOf(v);
        return String.valueOf(v);
    }

    public static void main(String[] a) throws Throwable {
        for (String[] s : BROKER) for (String text : TEXTS) {
            Properties p = new Properties();
            p.put("broker.id", "1"); p.put("zookeeper.connect", "localhost:2181");
            p.put(s[0], text);
            try {
                Object made = make(p);
                String value;
                try { value = show(made.getClass().getMethod(s[1]).invoke(made)); }
                catch (NoSuchMethodException e) { value = "no getter"; }
                row("broker", s[0], text, "takes", value);
            } catch (Throwable t) { row("broker", s[0], text, "refuses", t.getClass().getSimpleName() + ": " + t.getMessage()); }
        }
        for (String name : TOPIC) for (String text : TEXTS) {
            Properties p = new Properties(); p.put(name, text);
            try { row("topic", name, text, "takes", String.valueOf(validateTopic(p))); }
            catch (Throwable t) { row("topic", name, text, "refuses", t.getClass().getSimpleName() + ": " + t.getMessage()); }
        }
    }
}
