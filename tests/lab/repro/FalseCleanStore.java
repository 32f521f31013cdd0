import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
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
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.apache.kafka.streams.state.Stores;
import org.rocksdb.Options;

/**
 * Exactly-once is broken by a kill inside the dirty close of a task: Kafka Streams 4.3.0 and later, see
 * docs/found/false-clean-store.md.
 *
 * <pre>java -cp CLASSES:JARS FalseCleanStore BOOTSTRAP</pre>
 *
 * <p>The application runs in a process of its own, which is killed. The last line begins with {@code LOST} or {@code OK}.
 */
public final class FalseCleanStore {
    private static final int KEYS = 200;
    private static final String LAST = "key" + (KEYS - 1);
    private static final List<String> STORES = List.of("counts-a", "counts-b");

    private FalseCleanStore() { }

    public static void main(final String[] arguments) throws Exception {
        if (arguments.length > 1) {
            application(arguments[0], arguments[1], Path.of(arguments[2]), arguments[3]);
            return;
        }
        System.out.println("kafka-streams " + release());
        final Case life = new Case(arguments[0]);
        System.out.println("== first life: every key once, committed, orderly close");
        life.start("100");
        life.produce();
        life.awaitCommit();
        life.ask("close", "closed");
        life.kill();
        System.out.println("== second life: every key again, then processing fails: the thread dies");
        life.start("600000");
        life.ask("fail", "processing will fail");
        life.produce();
        life.await("inside the close");
        life.kill();
        System.out.println("== third life");
        life.start("100");
        life.awaitCommit();
        final String counts = life.ask("count", "keys by count: ");
        final boolean right = counts.equals("keys by count: {counts-a={2=" + KEYS + "}, counts-b={2=" + KEYS + "}}");
        System.out.printf("%s exactly_once_v2: each of %d keys was sent twice; %s%n", right ? "OK" : "LOST", KEYS, counts);
        System.exit(0); // the application ends with its input
    }

    /** Of the jars that it runs with. */
    private static String release() throws IOException {
        final Properties kafka = new Properties();
        try (InputStream file = KafkaStreams.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            kafka.load(file);
        }
        return kafka.getProperty("version");
    }

    /** One application id with its topics, state directory and process. */
    private static final class Case {
        private final String bootstrap;
        private final String id = "false-clean-store-" + UUID.randomUUID();
        private final Path state = Files.createTempDirectory("false-clean-store");
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private Process process;
        private BufferedReader answers;
        private long produced;

        Case(final String bootstrap) throws Exception {
            this.bootstrap = bootstrap;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(new NewTopic(id, 1, (short) 1))).all().get();
        }

        void start(final String commitIntervalMs) throws IOException {
            process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"), "-cp", System.getProperty("java.class.path"),
                FalseCleanStore.class.getName(), bootstrap, id, state.toString(), commitIntervalMs)
                .redirectError(state.resolve("stderr").toFile()).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
            await("running");
        }

        void produce() {
            for (int key = 0; key < KEYS; key++) {
                producer.send(new ProducerRecord<>(id, 0, "key" + key, ""));
            }
            producer.flush();
            produced += KEYS;
        }

        void awaitCommit() throws Exception {
            final TopicPartition input = new TopicPartition(id, 0);
            final Instant end = Instant.now().plusSeconds(120);
            while (true) {
                final var committed = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().get(input);
                if (committed != null && committed.offset() >= produced) {
                    return;
                }
                if (Instant.now().isAfter(end)) {
                    throw new IllegalStateException("not all records are committed after two minutes, see " + state);
                }
                TimeUnit.MILLISECONDS.sleep(50);
            }
        }

        String ask(final String question, final String answer) throws IOException {
            new PrintStream(process.getOutputStream(), true).println(question);
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
            System.out.println("SIGKILL");
        }
    }

    private static volatile boolean stopsInDirtyClose;
    private static volatile boolean processingFails;

    /** Stops the close of a task when its first store is closed, and its second one is not. Changes no setting. */
    public static final class Watcher implements RocksDBConfigSetter {
        private static String closed = "";

        @Override
        public void setConfig(final String store, final Options options, final Map<String, Object> configs) { }

        @Override
        public void close(final String store, final Options options) {
            if (stopsInDirtyClose && Thread.currentThread().getName().contains("StreamThread")) {
                if (!closed.isEmpty()) {
                    System.out.println("inside the close: " + closed + " is closed, " + store + " is not");
                    while (true) {
                        LockSupport.park();
                    }
                }
                closed = store;
            }
        }
    }

    /** Counts every key in two stores, and can be made to fail at the last one. */
    private static final class Counting implements Processor<String, String, Void, Void> {
        private final List<KeyValueStore<String, Long>> stores = new ArrayList<>();
        @Override
        public void init(final ProcessorContext<Void, Void> context) {
            stores.clear();
            STORES.forEach(store -> stores.add(context.getStateStore(store)));
        }

        @Override
        public void process(final Record<String, String> record) {
            for (final KeyValueStore<String, Long> store : stores) {
                final Long before = store.get(record.key());
                store.put(record.key(), before == null ? 1 : before + 1);
            }
            if (processingFails && record.key().equals(LAST)) {
                throw new IllegalStateException("made to fail");
            }
        }
    }

    private static void application(
        final String bootstrap, final String id, final Path state, final String commitIntervalMs) throws Exception {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitIntervalMs);
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Watcher.class);
        settings.put("session.timeout.ms", 6_000);
        settings.put("producer.transaction.timeout.ms", 700_000);
        final Topology topology = new Topology();
        topology.addSource("input", Serdes.String().deserializer(), Serdes.String().deserializer(), id);
        topology.addProcessor("counting", Counting::new, "input");
        for (final String store : STORES) {
            topology.addStateStore(Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore(store), Serdes.String(), Serdes.Long()), "counting");
        }
        final KafkaStreams streams = new KafkaStreams(topology, settings);
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
            public void onRestoreEnd(final TopicPartition partition, final String store, final long count) { }
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                System.out.println("running");
            }
        });
        streams.start();
        final BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String question = questions.readLine(); question != null; question = questions.readLine()) {
            switch (question) {
                case "count":
                    final Map<String, Map<Long, Integer>> counts = new TreeMap<>();
                    for (final String store : STORES) {
                        counts.put(store, keysByCount(streams.store(
                            StoreQueryParameters.fromNameAndType(store, QueryableStoreTypes.keyValueStore()))));
                    }
                    System.out.println("keys by count: " + counts);
                    break;
                case "fail":
                    stopsInDirtyClose = true;
                    processingFails = true;
                    System.out.println("processing will fail");
                    break;
                default:
                    streams.close();
                    System.out.println("closed");
            }
        }
        Runtime.getRuntime().halt(0); // the other process is gone
    }

    /** Number of keys by count. */
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
