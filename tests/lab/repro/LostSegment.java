import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.WindowStore;
import org.rocksdb.Options;

/**
 * A window store loses a whole segment after a kill: Kafka Streams 4.3.0 and later, see docs/found/lost-segment.md.
 *
 * <pre>java -cp CLASSES:JARS LostSegment BOOTSTRAP</pre>
 *
 * <p>The application runs in a process of its own, which is killed. RocksDB has its defaults. Each case ends with a line
 * that begins with {@code LOST} or {@code OK}.
 */
public final class LostSegment {
    private static final long HOUR_MS = 3_600_000;
    private static final long SEGMENT_MS = 3 * HOUR_MS;
    /** Where the newer segment starts: in the past, as brokers refuse records from the future. The application is told. */
    private static final long NEWER_MS =
        Long.getLong("newer", System.currentTimeMillis() / SEGMENT_MS * SEGMENT_MS - SEGMENT_MS);
    private static final long OLDER_MS = NEWER_MS - SEGMENT_MS;
    private static final int RECORDS = 500;
    private static final String STORE = "windows";
    private static final String TRANSACTIONAL = "enable.transactional.statestores";

    private LostSegment() { }

    public static void main(final String[] arguments) throws Exception {
        if (arguments.length > 1) {
            application(arguments[0], arguments[1], arguments[2], Path.of(arguments[3]), arguments[4]);
            return;
        }
        System.out.println("kafka-streams " + release());
        killedWhileItRuns(new Case(arguments[0], "at_least_once", false));
        killedInsideItsClose(new Case(arguments[0], "exactly_once_v2", false));
        if (StreamsConfig.configDef().names().contains(TRANSACTIONAL)) {
            killedWhileItRuns(new Case(arguments[0], "exactly_once_v2", true));
        }
        System.exit(0);
    }

    /** Of the jars that it runs with. */
    private static String release() throws IOException {
        final Properties kafka = new Properties();
        try (InputStream file = KafkaStreams.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            kafka.load(file);
        }
        return kafka.getProperty("version");
    }

    /** The newer segment has flushed, the older one has not, and all is committed: SIGKILL. */
    private static void killedWhileItRuns(final Case life) throws Exception {
        System.out.printf("== %s%s, SIGKILL while it runs%n", life.guarantee, life.transactional ? ", " + TRANSACTIONAL : "");
        life.start();
        life.produce("older", OLDER_MS, 10);
        for (int batch = 0; !life.hasFlushed(NEWER_MS); batch++) {
            life.produce("newer" + batch + "-", NEWER_MS, 2_000); // 16 MiB until RocksDB flushes by itself
        }
        final String before = life.windows();
        System.out.printf("segments flushed: older %s, newer %s%n",
            life.hasFlushed(OLDER_MS), life.hasFlushed(NEWER_MS));
        life.kill();
        life.compare(before);
    }

    /** The close has reached the older segment, and not the newer one: SIGKILL. */
    private static void killedInsideItsClose(final Case life) throws Exception {
        System.out.println("== exactly_once_v2, SIGKILL inside close()");
        life.start();
        life.produce("older", OLDER_MS, 10);
        life.produce("newer", NEWER_MS, 10);
        final String before = life.windows();
        life.ask("close", "closing " + STORE + "." + NEWER_MS);
        life.kill();
        life.compare(before);
    }

    /** One application id with its topic, state directory and process. */
    private static final class Case {
        private final String bootstrap;
        private final String guarantee;
        private final boolean transactional;
        private final String id = "lost-segment-" + UUID.randomUUID();
        private final Path state = Files.createTempDirectory("lost-segment");
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private Process process;
        private BufferedReader answers;
        private long produced;

        Case(final String bootstrap, final String guarantee, final boolean transactional) throws Exception {
            this.bootstrap = bootstrap;
            this.guarantee = guarantee;
            this.transactional = transactional;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(new NewTopic(id, 1, (short) 1))).all().get();
        }

        void start() throws IOException {
            process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m", "-Dnewer=" + NEWER_MS,
                "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"), "-cp", System.getProperty("java.class.path"),
                LostSegment.class.getName(), bootstrap, id, guarantee, state.toString(),
                Boolean.toString(transactional))
                .redirectError(state.resolve("stderr").toFile()).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
            await("running");
        }

        /** Produces records with keys of their own and waits until the application has committed them. */
        void produce(final String prefix, final long timestamp, final int size) throws Exception {
            for (int key = 0; key < RECORDS; key++) {
                producer.send(new ProducerRecord<>(id, 0, timestamp, prefix + key, "x".repeat(size)));
            }
            producer.flush();
            produced += RECORDS;
            final TopicPartition input = new TopicPartition(id, 0);
            until("all records are committed", () -> {
                final var committed = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().get(input);
                return committed != null && committed.offset() >= produced;
            });
        }

        boolean hasFlushed(final long segment) throws IOException {
            final File[] files = state.resolve(id).resolve("0_0").resolve(STORE).resolve(STORE + "." + segment).toFile()
                .listFiles((folder, name) -> name.endsWith(".sst"));
            return files != null && files.length > 0;
        }

        String windows() throws IOException {
            return ask("count", "windows: ");
        }

        String ask(final String question, final String answer) throws IOException {
            final PrintStream questions = new PrintStream(process.getOutputStream(), true);
            questions.println(question);
            return await(answer);
        }

        String await(final String start) throws IOException {
            for (String line = answers.readLine(); line != null; line = answers.readLine()) {
                System.out.println("  application: " + line);
                if (line.startsWith(start)) {
                    return line;
                }
            }
            throw new IllegalStateException("the application ended before it said " + start + ", see " + state);
        }

        void kill() throws InterruptedException {
            process.destroyForcibly().waitFor();
            System.out.println("SIGKILL, start again");
        }

        void compare(final String before) throws IOException {
            start();
            final String after = windows();
            System.out.printf("%s %s: before the kill %s, after it %s%n",
                before.equals(after) ? "OK" : "LOST", guarantee, before, after);
            process.destroyForcibly();
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private static void until(final String what, final Condition condition) throws Exception {
        final Instant end = Instant.now().plusSeconds(120);
        while (!condition.holds()) {
            if (Instant.now().isAfter(end)) {
                throw new IllegalStateException("still not after two minutes: " + what);
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
    }

    private static volatile boolean closing;

    /** Says when a segment is about to be closed, and stops there: the moment that the SIGKILL hits. Changes no setting. */
    public static final class Watcher implements RocksDBConfigSetter {
        @Override
        public void setConfig(final String store, final Options options, final Map<String, Object> configs) { }

        @Override
        public void close(final String store, final Options options) {
            if (closing) {
                System.out.println("closing " + store);
                if (store.equals(STORE + "." + NEWER_MS)) {
                    while (true) {
                        LockSupport.park();
                    }
                }
            }
        }
    }

    /** The application: keeps the last value of every key and hour, for six hours, so segments are of three hours. */
    private static void application(
        final String bootstrap, final String id, final String guarantee, final Path state, final String transactional)
        throws Exception {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Watcher.class);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(TRANSACTIONAL, transactional);
        settings.put("session.timeout.ms", 6_000);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(id).groupByKey()
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(HOUR_MS), Duration.ofMillis(5 * HOUR_MS)))
            .reduce((before, now) -> now, Materialized.<String, String, WindowStore<Bytes, byte[]>>as(STORE)
                .withRetention(Duration.ofMillis(2 * SEGMENT_MS)));
        final KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(
                final TopicPartition partition, final String store, final long from, final long to) {
                System.out.printf("restores %s from offset %d to %d%n", store, from, to);
            }

            @Override
            public void onBatchRestored(
                final TopicPartition partition, final String store, final long end, final long count) { }

            @Override
            public void onRestoreEnd(final TopicPartition partition, final String store, final long count) {
                System.out.printf("restored %d records%n", count);
            }
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("running");
            }
        });
        streams.start();
        final BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String question = questions.readLine(); question != null; question = questions.readLine()) {
            if (question.equals("count")) {
                final ReadOnlyWindowStore<String, String> store = streams.store(
                    StoreQueryParameters.fromNameAndType(STORE, QueryableStoreTypes.windowStore()));
                System.out.printf("windows: %d in the older segment, %d in the newer%n",
                    count(store, OLDER_MS), count(store, NEWER_MS));
            } else {
                closing = true;
                streams.close();
            }
        }
        Runtime.getRuntime().halt(0); // the other process is gone
    }

    private static int count(final ReadOnlyWindowStore<String, String> store, final long start) {
        int count = 0;
        try (KeyValueIterator<Windowed<String>, String> all = store.fetchAll(
            Instant.ofEpochMilli(start), Instant.ofEpochMilli(start + SEGMENT_MS - 1))) {
            for (; all.hasNext(); all.next()) {
                count++;
            }
        }
        return count;
    }
}
