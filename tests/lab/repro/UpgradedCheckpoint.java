import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
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
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/**
 * A checkpoint that a release with KAFKA-20685 left at a kill is migrated and trusted: Kafka Streams 4.3.0 and later, see
 * docs/found/upgraded-checkpoint.md.
 *
 * <pre>java -cp CLASSES:JARS UpgradedCheckpoint BOOTSTRAP CLASSES_AND_JARS_OF_3.9 CLASSES_AND_JARS_OF_4.2.2</pre>
 *
 * <p>The application runs in a process of its own, which is killed. Each case ends with a line that begins with
 * {@code LOST} or {@code OK}.
 */
public final class UpgradedCheckpoint {
    private static final int KEYS = 200;
    private static final int MORE = 6_000;

    private UpgradedCheckpoint() { }

    public static void main(final String[] arguments) throws Exception {
        if (arguments.length > 3) {
            application(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
            return;
        }
        System.out.println("kafka-streams " + release());
        play(new Case(arguments[0]), "3.9, which has KAFKA-20685", arguments[1]);
        play(new Case(arguments[0]), "4.2.2, which has its fix", arguments[2]);
        System.exit(0);
    }

    private static void play(final Case life, final String who, final String classes) throws Exception {
        final String what = "killed on " + who + ", then upgraded";
        System.out.println("== " + what);
        life.leave(classes);
        System.out.println(".checkpoint after the kill: " + life.checkpoint());
        life.start(System.getProperty("java.class.path"), 100, false);
        if (!life.runs(120)) {
            throw new IllegalStateException("not RUNNING after two minutes, see " + life.state);
        }
        until("all is committed", () -> life.committed() >= life.produced);
        final String counts = life.ask("count", "keys by count");
        life.kill();
        final boolean right = counts.equals("keys by count: {1=" + (KEYS + MORE) + "}");
        System.out.printf("%s %s: each of %d keys was sent once; %s%n", right ? "OK" : "LOST", what, KEYS + MORE, counts);
    }

    /** Of the jars that it runs with. */
    private static String release() throws IOException {
        final Properties kafka = new Properties();
        try (InputStream file = KafkaStreams.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            kafka.load(file);
        }
        return kafka.getProperty("version");
    }

    /** One application id with its topic, state directory and process. */
    private static final class Case {
        private final String bootstrap;
        private final String id = "upgraded-checkpoint-" + UUID.randomUUID();
        private final Path state = Files.createTempDirectory("upgraded-checkpoint");
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private Process process;
        private BufferedReader answers;
        private int produced;

        Case(final String bootstrap) throws Exception {
            this.bootstrap = bootstrap;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(new NewTopic(id, 1, (short) 1))).all().get();
        }

        /** Committed keys first; then others that RocksDB flushes and nobody commits: SIGKILL. */
        void leave(final String classes) throws Exception {
            start(classes, 100, false);
            await("running");
            produce(KEYS);
            until("all is committed", () -> committed() >= produced);
            ask("close", "closed");
            kill();
            start(classes, 600_000, false);
            await("running");
            final long files = files();
            produce(MORE);
            until("all is counted", () -> ask("count", "keys by count").contains("=" + (KEYS + MORE) + "}"));
            until("RocksDB has flushed some of it", () -> files() > files);
            kill();
        }

        void start(final String classes, final int commitIntervalMs, final boolean transactional) throws IOException {
            process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"), "-cp", classes,
                UpgradedCheckpoint.class.getName(), bootstrap, id, state.toString(), "" + commitIntervalMs, "" + transactional)
                .redirectError(state.resolve("stderr").toFile()).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
        }

        void produce(final int keys) {
            for (int key = produced; key < produced + keys; key++) {
                producer.send(new ProducerRecord<>(id, 0, "key" + key, ""));
            }
            producer.flush();
            produced += keys;
        }

        long committed() throws Exception {
            final var offset = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get()
                .get(new TopicPartition(id, 0));
            return offset == null ? 0 : offset.offset();
        }

        String checkpoint() throws IOException {
            final Path file = state.resolve(id).resolve("0_0").resolve(".checkpoint");
            final List<String> lines = Files.exists(file) ? Files.readAllLines(file) : List.of("", "");
            return lines.size() > 2 ? lines.get(2).replace(id + "-", "") : "none";
        }

        /** Data files of the store. */
        long files() throws IOException {
            try (var all = Files.list(state.resolve(id).resolve("0_0").resolve("rocksdb").resolve("counts"))) {
                return all.filter(file -> file.toString().endsWith(".sst")).count();
            }
        }

        /** Tells whether the application gets to RUNNING in time. */
        boolean runs(final int withinS) throws Exception {
            final Instant end = Instant.now().plusSeconds(withinS);
            while (!answers.ready() && Instant.now().isBefore(end)) {
                TimeUnit.MILLISECONDS.sleep(50);
            }
            while (Instant.now().isBefore(end)) {
                if (answers.ready()) {
                    final String line = answers.readLine();
                    System.out.println("  application: " + line);
                    if (line.equals("running")) {
                        return true;
                    }
                } else {
                    TimeUnit.MILLISECONDS.sleep(50);
                }
            }
            return false;
        }

        String ask(final String question, final String answer) throws IOException {
            new PrintStream(process.getOutputStream(), true).println(question);
            return await(answer);
        }

        String await(final String start) throws IOException {
            for (String line = answers.readLine(); line != null; line = answers.readLine()) {
                if (line.startsWith(start)) {
                    return line;
                }
            }
            throw new IllegalStateException("the application ended before it said " + start + ", see " + state);
        }

        void kill() throws InterruptedException {
            process.destroyForcibly().waitFor();
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

    /** Small memtables, so that RocksDB flushes soon; nothing else. */
    public static final class Memtables implements RocksDBConfigSetter {
        @Override
        public void setConfig(final String store, final Options options, final Map<String, Object> configs) {
            options.setWriteBufferSize(65_536);
        }

        @Override
        public void close(final String store, final Options options) { }
    }

    /** The application: counts every key. */
    private static void application(
        final String bootstrap, final String id, final String state, final String commitIntervalMs,
        final String transactional) throws Exception {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitIntervalMs);
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Memtables.class);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put("enable.transactional.statestores", transactional); // earlier releases than 4.4 do not know it
        settings.put("session.timeout.ms", 6_000);
        settings.put("producer.transaction.timeout.ms", 700_000);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(id).groupByKey()
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withCachingDisabled());
        final KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("running");
            }
        });
        streams.start();
        final BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String question = questions.readLine(); question != null; question = questions.readLine()) {
            if (question.equals("count")) {
                System.out.println("keys by count: " + keysByCount(streams.store(
                    StoreQueryParameters.fromNameAndType("counts", QueryableStoreTypes.keyValueStore()))));
            } else {
                streams.close();
                System.out.println("closed");
            }
        }
        Runtime.getRuntime().halt(0); // the other process is gone
    }

    private static Map<Long, Integer> keysByCount(final ReadOnlyKeyValueStore<String, Long> store) {
        final Map<Long, Integer> keys = new TreeMap<>();
        try (KeyValueIterator<String, Long> all = store.all()) {
            while (all.hasNext()) {
                keys.merge(all.next().value, 1, Integer::sum);
            }
        }
        return keys;
    }
}
