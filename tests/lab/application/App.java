import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.rocksdb.CompactionOptionsFIFO;
import org.rocksdb.CompactionStyle;
import org.rocksdb.CompressionType;
import org.rocksdb.InfoLogLevel;

/**
 * One instance of a Kafka Streams application that counts, for every release since 2.0.
 *
 * <p>Compiled against each release by itself; what the API lost or gained between releases is called by
 * reflection. Arguments are {@code key=value}: {@code stores} lists the stores ({@code kv}, {@code plain},
 * {@code memory}, {@code window}, {@code session}, {@code table}, {@code global}, {@code repartition},
 * {@code versioned}, {@code unlogged}, {@code join}, {@code inner}, {@code foreign}, {@code suppress}, {@code empty},
 * {@code closing}, {@code third}, {@code front}, {@code kv-b}, {@code window-b}), {@code input} names the topic, {@code restore.delay.ms} slows restoration,
 * {@code window.ms}, {@code grace.ms} and {@code retention.ms} tell of windows, the rest is handed to Kafka Streams. Commands come on standard input, answers and events go to standard output, one line each.
 */
public final class App {
    private static volatile int restoreDelayMs;
    private static Duration span;
    private static Duration grace;
    private static Duration retention;
    private static final AtomicInteger FAILING_COMMITS = new AtomicInteger();
    private static final AtomicInteger POISON = new AtomicInteger();

    private App() { }

    /** Memtable size by the property {@code live.write.buffer}, others by {@code live.*}: see below. */
    public static final class Memtables implements RocksDBConfigSetter {
        @Override
        public void setConfig(
            final String store, final org.rocksdb.Options options, final Map<String, Object> configs) {
            final Object bytes = configs.get("live.write.buffer");
            if (bytes != null) {
                options.setWriteBufferSize(Long.parseLong(bytes.toString()));
            }
            if (configs.containsKey("live.universal")) {
                options.setCompactionStyle(CompactionStyle.UNIVERSAL);
                options.setCompressionType(CompressionType.LZ4_COMPRESSION);
                options.setMaxOpenFiles(32);
            }
            if (configs.containsKey("live.one.log")) {
                options.setKeepLogFileNum(1);
            }
            if (configs.containsKey("live.rolling.log")) {
                options.setInfoLogLevel(InfoLogLevel.DEBUG_LEVEL);
                final long size = Long.parseLong(configs.get("live.rolling.log").toString());
                options.setMaxLogFileSize(size > 1 ? size : 4096);
            }
            if (configs.containsKey("live.small.manifest")) {
                options.setMaxManifestFileSize(512);
            }
            if (configs.containsKey("live.blobs")) {
                try {
                    org.rocksdb.Options.class.getMethod("setEnableBlobFiles", boolean.class).invoke(options, true);
                } catch (final ReflectiveOperationException before30) {
                    throw new IllegalStateException(before30);
                }
            }
            if (configs.containsKey("live.fifo") && store.equals("plain")) {
                options.setCompactionStyle(CompactionStyle.FIFO);
                options.setCompactionOptionsFIFO(new CompactionOptionsFIFO().setMaxTableFilesSize(100_000));
            }
            if (configs.containsKey("live.log.dir")) {
                options.setDbLogDir(System.getProperty("java.io.tmpdir"));
            }
        }

        // no @Override: releases before 2.3 do not have it
        public void close(final String store, final org.rocksdb.Options options) { }
    }

    /** Clients of which the next commits of transactions can be made to time out, as it does on a slow broker. */
    private static final class Clients extends DefaultKafkaClientSupplier {
        @Override
        public Producer<byte[], byte[]> getProducer(final Map<String, Object> settings) {
            return new KafkaProducer<byte[], byte[]>(settings, new ByteArraySerializer(), new ByteArraySerializer()) {
                @Override
                public void commitTransaction() {
                    if (FAILING_COMMITS.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
                        say("commit-failed");
                        throw new TimeoutException("made to time out");
                    }
                    super.commitTransaction();
                }
            };
        }
    }

    public static void main(final String[] arguments) throws Exception {
        final Properties settings = new Properties();
        for (final String argument : arguments) {
            final int at = argument.indexOf('=');
            settings.put(argument.substring(0, at), argument.substring(at + 1));
        }
        final String input = (String) settings.remove("input");
        final Set<String> stores = new HashSet<>(Arrays.asList(((String) settings.remove("stores")).split(",")));
        restoreDelayMs = (int) take(settings, "restore.delay.ms", 0).toMillis();
        span = take(settings, "window.ms", 10_000);
        grace = take(settings, "grace.ms", 0);
        retention = take(settings, "retention.ms", 120_000);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.String().getClass());
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Memtables.class);
        if (stores.contains("table")) {
            settings.putIfAbsent("topology.optimization", "all");
        }
        final Topology topology = build(stores, input, settings);
        final KafkaStreams streams = new KafkaStreams(topology, settings, new Clients());
        streams.setStateListener((now, before) -> say("state " + now));
        streams.setGlobalStateRestoreListener(new Restores());
        tellFailures(streams, settings.containsKey("live.replace.threads") ? "REPLACE_THREAD" : "SHUTDOWN_CLIENT");
        final BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            try {
                say("answer " + obey(streams, topology, line.split(" ")));
            } catch (final Throwable problem) {
                say("answer problem " + problem);
            }
            if (line.equals("exit")) {
                Runtime.getRuntime().halt(0);
            }
        }
    }

    private static Duration take(final Properties settings, final String name, final long otherwise) {
        final Object given = settings.remove(name);
        return Duration.ofMillis(given == null ? otherwise : Long.parseLong(given.toString()));
    }

    /** Says why a thread failed, and what becomes of it; releases before 2.8 end the thread and nothing else. */
    private static void tellFailures(final KafkaStreams streams, final String response) throws Exception {
        final Class<?> handler;
        try {
            handler = Class.forName("org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler");
        } catch (final ClassNotFoundException before28) {
            final Thread.UncaughtExceptionHandler old = (thread, failure) -> {
                tell(failure);
                say("state ERROR"); // the instance goes on without the thread, and may never say so
            };
            KafkaStreams.class.getMethod("setUncaughtExceptionHandler", Thread.UncaughtExceptionHandler.class)
                .invoke(streams, old);
            return;
        }
        final Class<?> answers = Class.forName(handler.getName() + "$StreamThreadExceptionResponse");
        final Object answer = answers.getField(response).get(null);
        final Object proxy = Proxy.newProxyInstance(
            App.class.getClassLoader(), new Class<?>[] {handler}, (self, method, given) -> {
                tell((Throwable) given[0]);
                return answer;
            });
        KafkaStreams.class.getMethod("setUncaughtExceptionHandler", handler).invoke(streams, proxy);
    }

    private static void tell(final Throwable failure) {
        final StringBuilder causes = new StringBuilder("failed");
        for (Throwable one = failure; one != null; one = one.getCause()) {
            causes.append(" <- ").append(one);
        }
        say(causes.toString().replaceAll("\\s+", " "));
        failure.printStackTrace();
    }

    private static Object obey(final KafkaStreams streams, final Topology topology, final String[] words)
        throws Exception {
        switch (words[0]) {
            case "start":
                streams.start();
                return "started";
            case "close":
                close(streams, words);
                return "closed";
            case "dump":
                return Contents.write(streams, words);
            case "stores":
                return Contents.stores(topology);
            case "cleanup":
                streams.cleanUp();
                return "cleaned";
            case "count":
                try {
                    return count(streams, words[1]);
                } catch (final InvalidStateStoreException elsewhere) {
                    if (streams.state() == KafkaStreams.State.RUNNING) {
                        return "0 0 0"; // only standbys here
                    }
                    throw elsewhere;
                }
            case "windows":
                return windows(streams, words[1]);
            case "sessions":
                return sessions(streams, words[1]);
            case "versions":
                return versions(streams, words);
            case "pause":
            case "resume":
                KafkaStreams.class.getMethod(words[0]).invoke(streams);
                return words[0];
            case "active":
                return active(streams);
            case "thread":
                return KafkaStreams.class.getMethod(words[1] + "StreamThread").invoke(streams);
            case "fail-commit":
                FAILING_COMMITS.set(words.length > 1 ? Integer.parseInt(words[1]) : 1);
                return "set";
            case "poison":
                POISON.set(Integer.parseInt(words[1]));
                return "set";
            case "restore-delay":
                restoreDelayMs = Integer.parseInt(words[1]);
                return "set";
            case "exit":
                return "bye";
            default:
                return "problem unknown " + words[0];
        }
    }

    /** {@code close}, or {@code close MS}: gives up waiting after so long. */
    private static void close(final KafkaStreams streams, final String[] words) throws Exception {
        if (words.length == 1) {
            streams.close();
            return;
        }
        final long ms = Long.parseLong(words[1]);
        try {
            KafkaStreams.class.getMethod("close", Duration.class).invoke(streams, Duration.ofMillis(ms));
        } catch (final NoSuchMethodException before21) {
            KafkaStreams.class.getMethod("close", long.class, TimeUnit.class).invoke(streams, ms, TimeUnit.MILLISECONDS);
        }
    }

    /** Active tasks of this instance, for releases from 3.0 on. */
    private static String active(final KafkaStreams streams) throws Exception {
        final Object threads = KafkaStreams.class.getMethod("metadataForLocalThreads").invoke(streams);
        final StringBuilder tasks = new StringBuilder("active");
        for (final Object thread : (Set<?>) threads) {
            final Object active =
                Class.forName("org.apache.kafka.streams.ThreadMetadata").getMethod("activeTasks").invoke(thread);
            for (final Object task : (Set<?>) active) {
                tasks.append(' ')
                    .append(Class.forName("org.apache.kafka.streams.TaskMetadata").getMethod("taskId").invoke(task));
            }
        }
        return tasks.toString();
    }

    // ------------------------------------------------------------------------------------ topology

    private static Topology build(final Set<String> stores, final String input, final Properties settings)
        throws Exception {
        final StreamsBuilder builder = new StreamsBuilder();
        if (stores.contains("front")) { // another source before the others: every sub-topology's number changes
            builder.<String, String>stream(input + "-front").groupByKey()
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("front"));
        }
        final KStream<String, String> source = builder.stream(input);
        final KStream<String, String> records =
            settings.containsKey("live.poison") ? source.peek((key, value) -> swallow()) : source;
        for (final String name : new String[] {"kv", "kv-b"}) { // -b: what a store is called after it was renamed
            if (stores.contains(name)) {
                final KTable<String, Long> counts =
                    records.groupByKey().count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(name));
                if (settings.containsKey("live.output")) {
                    counts.toStream().to(settings.getProperty("live.output"), Produced.with(Serdes.String(), Serdes.Long()));
                }
            }
        }
        if (stores.contains("plain")) {
            records.groupByKey().count(of(Stores.persistentKeyValueStore("plain")));
        }
        if (stores.contains("memory")) {
            records.groupByKey().count(of(Stores.inMemoryKeyValueStore("memory")));
        }
        for (final String name : new String[] {"window", "window-b"}) {
            if (stores.contains(name)) {
                final Materialized<String, Long, WindowStore<Bytes, byte[]>> window = Materialized.as(name);
                retain(window);
                final TimeWindows size = (TimeWindows) lasting(TimeWindows.class, "ofSizeAndGrace", "of");
                records.groupByKey().windowedBy(size).count(window);
            }
        }
        if (stores.contains("session")) {
            final Materialized<String, Long, SessionStore<Bytes, byte[]>> session = Materialized.as("session");
            retain(session);
            final SessionWindows gap =
                (SessionWindows) lasting(SessionWindows.class, "ofInactivityGapAndGrace", "with");
            records.groupByKey().windowedBy(gap).count(session);
        }
        if (stores.contains("closing")) {
            closing(records);
        }
        if (stores.contains("repartition")) {
            records.selectKey((key, value) -> "r" + key).groupByKey()
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("repartition"));
        }
        if (stores.contains("empty")) {
            records.filter((key, value) -> false).groupByKey()
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("empty"));
        }
        if (stores.contains("third")) {
            records.groupByKey().count(of(new ThirdParty("third")));
        }
        if (stores.contains("unlogged")) {
            records.groupByKey().count(
                Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("unlogged").withLoggingDisabled());
        }
        if (stores.contains("join")) {
            final JoinWindows near = (JoinWindows) lasting(JoinWindows.class, "ofTimeDifferenceAndGrace", "of");
            records.leftJoin(records.filter((key, value) -> key.endsWith("7")), (one, other) -> one, near);
        }
        if (stores.contains("inner")) {
            final JoinWindows near = (JoinWindows) lasting(JoinWindows.class, "ofTimeDifferenceAndGrace", "of");
            records.join(records.filter((key, value) -> key.endsWith("7")), (one, other) -> one, near);
        }
        if (stores.contains("foreign")) {
            joinForeign(records);
        }
        if (stores.contains("suppress")) {
            final TimeWindows size = (TimeWindows) lasting(TimeWindows.class, "ofSizeAndGrace", "of");
            suppress(records.groupByKey().windowedBy(size).count(Materialized.with(Serdes.String(), Serdes.Long())));
        }
        if (stores.contains("table")) {
            builder.table(input + "-table", Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("table"));
        }
        if (stores.contains("global")) {
            builder.globalTable(
                input + "-global", Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("global"));
        }
        if (stores.contains("versioned")) {
            final Object supplier = Stores.class
                .getMethod("persistentVersionedKeyValueStore", String.class, Duration.class)
                .invoke(null, "versioned", Duration.ofMinutes(10));
            final Class<?> type = Class.forName("org.apache.kafka.streams.state.VersionedBytesStoreSupplier");
            // a VersionedBytesStoreSupplier made by Stores is a KeyValueBytesStoreSupplier, too
            builder.table(input + "-versioned", of((KeyValueBytesStoreSupplier) type.cast(supplier)));
        }
        try {
            return (Topology) StreamsBuilder.class.getMethod("build", Properties.class).invoke(builder, settings);
        } catch (final NoSuchMethodException before21) {
            return builder.build();
        }
    }

    /** Windows and sessions that are handed on when they close, from 3.3 on: their stores have the time first. */
    private static void closing(final KStream<String, String> records) throws Exception {
        final Class<?> strategy = Class.forName("org.apache.kafka.streams.kstream.EmitStrategy");
        final Object late = strategy.getMethod("onWindowClose").invoke(null);
        final Materialized<String, Long, WindowStore<Bytes, byte[]>> window = Materialized.as("closing");
        retain(window);
        final TimeWindowedKStream<String, String> windows =
            records.groupByKey().windowedBy((TimeWindows) lasting(TimeWindows.class, "ofSizeAndGrace", "of"));
        TimeWindowedKStream.class.getMethod("emitStrategy", strategy).invoke(windows, late);
        windows.count(window);
        final Materialized<String, Long, SessionStore<Bytes, byte[]>> session = Materialized.as("closing-session");
        retain(session);
        final SessionWindowedKStream<String, String> sessions = records.groupByKey()
            .windowedBy((SessionWindows) lasting(SessionWindows.class, "ofInactivityGapAndGrace", "with"));
        SessionWindowedKStream.class.getMethod("emitStrategy", strategy).invoke(sessions, late);
        sessions.count(session);
    }

    /** Fails as often as {@code poison} said. */
    private static void swallow() {
        if (POISON.get() > 0 && POISON.getAndDecrement() > 0) {
            say("poisoned");
            throw new IllegalStateException("a record that nobody can process");
        }
    }

    /** Joins counts with a table by the record's value: subscriptions, from 2.5 on. */
    private static void joinForeign(final KStream<String, String> records) throws Exception {
        final Object left = KStream.class.getMethod("toTable", Materialized.class).invoke(
            records.mapValues(value -> value), Materialized.as("foreign-left"));
        final KTable<String, Long> right = records.groupByKey().count(Materialized.as("foreign-right"));
        final Function<String, String> key = value -> value;
        final ValueJoiner<String, Long, String> joiner = (one, other) -> one;
        KTable.class.getMethod("join", KTable.class, Function.class, ValueJoiner.class, Materialized.class)
            .invoke(left, right, key, joiner, Materialized.as("foreign"));
    }

    /** Holds back windows until they close, in memory with a changelog, from 2.1 on. */
    private static void suppress(final KTable<Windowed<String>, Long> counts) throws Exception {
        final String name = "org.apache.kafka.streams.kstream.Suppressed";
        final Object unbounded = Class.forName(name + "$BufferConfig").getMethod("unbounded").invoke(null);
        final Class<?> strict = Class.forName(name + "$StrictBufferConfig");
        final Object closed = Class.forName(name).getMethod("untilWindowCloses", strict).invoke(null, unbounded);
        KTable.class.getMethod("suppress", Class.forName(name)).invoke(counts, closed);
    }

    private static <V> Materialized<String, V, KeyValueStore<Bytes, byte[]>> of(final KeyValueBytesStoreSupplier from) {
        return Materialized.as(from);
    }

    /** A window or gap and its grace, by the names that the release has. */
    private static Object lasting(final Class<?> type, final String young, final String old) throws Exception {
        try {
            return type.getMethod(young, Duration.class, Duration.class).invoke(null, span, grace);
        } catch (final NoSuchMethodException before30) {
            try {
                final Object windows = type.getMethod(old, Duration.class).invoke(null, span);
                return type.getMethod("grace", Duration.class).invoke(windows, grace);
            } catch (final NoSuchMethodException before21) {
                final Object windows = type.getMethod(old, long.class).invoke(null, span.toMillis());
                return type.getMethod("until", long.class).invoke(windows, retention.toMillis());
            }
        }
    }

    /** How long windows are kept, so that segments expire; 2.0 knows it on the windows only. */
    private static void retain(final Materialized<?, ?, ?> store) throws Exception {
        try {
            Materialized.class.getMethod("withRetention", Duration.class).invoke(store, retention);
        } catch (final NoSuchMethodException before21) {
            return;
        }
    }

    // ------------------------------------------------------------------------------------ contents

    /** {@code keys sum highest} of a store's counts, or {@code keys} where values are no counts. */
    private static String count(final KafkaStreams streams, final String name) throws Exception {
        final QueryableStoreType<ReadOnlyKeyValueStore<String, Object>> type = QueryableStoreTypes.keyValueStore();
        return sum(store(streams, name, type).all());
    }

    /** The same of a window store, also of a join. */
    private static String windows(final KafkaStreams streams, final String name) throws Exception {
        final QueryableStoreType<ReadOnlyWindowStore<String, Object>> type = QueryableStoreTypes.windowStore();
        return sum(store(streams, name, type).all());
    }

    /** The same of a session store, for releases from 3.1 on. */
    private static String sessions(final KafkaStreams streams, final String name) throws Exception {
        final QueryableStoreType<ReadOnlySessionStore<String, Object>> type = QueryableStoreTypes.sessionStore();
        return sum(store(streams, name, type).fetch(null, null));
    }

    private static String sum(final KeyValueIterator<?, ?> entries) {
        long keys = 0;
        long sum = 0;
        long highest = 0;
        try (KeyValueIterator<?, ?> all = entries) {
            while (all.hasNext()) {
                final Object of = all.next().value;
                final long value = of instanceof Long ? (Long) of : 0;
                keys++;
                sum += value;
                highest = Math.max(highest, value);
            }
        }
        return keys + " " + sum + " " + highest;
    }

    /** {@code keys sum highest} of the latest versions of keys PREFIX0 to PREFIX(N-1), by time in ms; from 3.7 on. */
    private static String versions(final KafkaStreams streams, final String[] words) throws Exception {
        final Class<?> query = Class.forName("org.apache.kafka.streams.query.VersionedKeyQuery");
        final Class<?> request = Class.forName("org.apache.kafka.streams.query.StateQueryRequest");
        final Class<?> anyQuery = Class.forName("org.apache.kafka.streams.query.Query");
        final Object in = request.getMethod("inStore", String.class).invoke(null, words[1]);
        final Class<?> inType = Class.forName(request.getName() + "$InStore");
        long keys = 0;
        long sum = 0;
        long highest = 0;
        for (int i = 0; i < Integer.parseInt(words[3]); i++) {
            final Object asked = query.getMethod("withKey", Object.class).invoke(null, words[2] + i);
            final Object question = inType.getMethod("withQuery", anyQuery).invoke(in, asked);
            final Object answers = KafkaStreams.class.getMethod("query", request).invoke(streams, question);
            final Object one = Class.forName("org.apache.kafka.streams.query.StateQueryResult")
                .getMethod("getOnlyPartitionResult").invoke(answers);
            final Object version = one == null ? null : Class.forName("org.apache.kafka.streams.query.QueryResult")
                .getMethod("getResult").invoke(one);
            if (version != null) {
                final long at = (Long) version.getClass().getMethod("timestamp").invoke(version);
                keys++;
                sum += at;
                highest = Math.max(highest, at);
            }
        }
        return keys + " " + sum + " " + highest;
    }

    @SuppressWarnings("unchecked")
    static <T> T store(final KafkaStreams streams, final String name, final QueryableStoreType<T> type)
        throws Exception {
        try {
            try {
                return (T) KafkaStreams.class
                    .getMethod("store", String.class, QueryableStoreType.class).invoke(streams, name, type);
            } catch (final NoSuchMethodException since30) {
                final Class<?> parameters = Class.forName("org.apache.kafka.streams.StoreQueryParameters");
                final Object question = parameters
                    .getMethod("fromNameAndType", String.class, QueryableStoreType.class).invoke(null, name, type);
                return (T) KafkaStreams.class.getMethod("store", parameters).invoke(streams, question);
            }
        } catch (final InvocationTargetException refused) {
            throw (Exception) refused.getCause(); // as a direct call does: this instance may have no task
        }
    }

    /** Tells of restorations, and slows them on request. */
    private static final class Restores implements StateRestoreListener {
        @Override
        public void onRestoreStart(
            final TopicPartition partition, final String store, final long from, final long to) {
            say("restore-start " + partition + " " + from + " " + to);
        }

        @Override
        public void onBatchRestored(
            final TopicPartition partition, final String store, final long last, final long records) {
            say("restored " + partition + " " + last);
            final long until = System.nanoTime() + restoreDelayMs * 1_000_000L;
            while (System.nanoTime() < until) {
                java.util.concurrent.locks.LockSupport.parkNanos(10_000_000L);
            }
        }

        @Override
        public void onRestoreEnd(final TopicPartition partition, final String store, final long records) {
            say("restore-end " + partition + " " + records);
        }
    }

    private static synchronized void say(final String line) {
        System.out.println("app: " + line);
        System.out.flush();
    }
}
