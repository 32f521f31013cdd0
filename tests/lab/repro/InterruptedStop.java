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
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaClientSupplier;
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
 * Exactly-once is broken by a kill amid an orderly stop whose commit failed: Kafka Streams 3.4.0 and later, see
 * docs/found/interrupted-stop.md.
 *
 * <pre>java -cp CLASSES:JARS InterruptedStop BOOTSTRAP</pre>
 *
 * <p>The application runs in a process of its own, which is killed. Each case ends with a line that begins with
 * {@code LOST} or {@code OK}.
 */
public final class InterruptedStop {
    private static final int KEYS = 100;
    private static final String LAST = "-" + (KEYS - 1);
    private static final List<String> STORES = List.of("counts-a", "counts-b");
    private static final int TASKS = 2;

    private InterruptedStop() { }

    public static void main(final String[] arguments) throws Exception {
        if (arguments.length > 1) {
            application(arguments[0], arguments[1], Path.of(arguments[2]), arguments[3], Integer.parseInt(arguments[4]));
            return;
        }
        System.out.println("kafka-streams " + release());
        play(new Case(arguments[0], 2), "the first task has closed one of its stores");
        play(new Case(arguments[0], 3), "the first task is wiped, the second is about to be closed");
        System.exit(0); // the application ends with its input
    }

    private static void play(final Case life, final String when) throws Exception {
        System.out.println("== killed when " + when);
        System.out.println("== first life: every key once, committed, orderly close");
        life.start("100");
        life.produce();
        life.awaitCommit();
        life.ask("close", "closed");
        life.kill();
        System.out.println("== second life: every key again, and an orderly stop; its commit times out");
        life.start("600000");
        life.showCheckpoints("while it runs");
        life.produce();
        for (int task = 0; task < TASKS; task++) {
            life.await("processed");
        }
        life.ask("fail", "commits will time out");
        life.ask("close", "about to close");
        life.showCheckpoints("inside the stop");
        life.kill();
        System.out.println("== third life");
        life.start("100");
        life.awaitCommit();
        final String counts = life.ask("count", "keys by count: ");
        life.kill();
        final String each = "{2=" + TASKS * KEYS + "}";
        final boolean right = counts.equals("keys by count: {counts-a=" + each + ", counts-b=" + each + "}");
        System.out.printf("%s killed when %s: right is %s in both; %s%n", right ? "OK" : "LOST", when, each, counts);
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
        private final int closes;
        private final String id = "interrupted-stop-" + UUID.randomUUID();
        private final Path state = Files.createTempDirectory("interrupted-stop");
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private Process process;
        private BufferedReader answers;
        private long produced;

        Case(final String bootstrap, final int closes) throws Exception {
            this.bootstrap = bootstrap;
            this.closes = closes;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(new NewTopic(id, TASKS, (short) 1))).all().get();
        }

        void start(final String commitIntervalMs) throws IOException {
            process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"), "-cp", System.getProperty("java.class.path"),
                InterruptedStop.class.getName(), bootstrap, id, state.toString(), commitIntervalMs,
                Integer.toString(closes))
                .redirectError(state.resolve("stderr").toFile()).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
            await("running");
        }

        void produce() {
            for (int key = 0; key < KEYS; key++) {
                for (int task = 0; task < TASKS; task++) {
                    producer.send(new ProducerRecord<>(id, task, "key-" + task + "-" + key, ""));
                }
            }
            producer.flush();
            produced += KEYS;
        }

        void awaitCommit() throws Exception {
            final Instant end = Instant.now().plusSeconds(120);
            while (true) {
                final var committed = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get();
                if (committed.size() == TASKS && committed.values().stream().allMatch(x -> x.offset() >= produced)) {
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

        /** Up to 4.2: offsets are in a file. From 4.3 on they are in the stores, and there is none. */
        void showCheckpoints(final String when) throws IOException {
            for (int task = 0; task < TASKS; task++) {
                final Path directory = state.resolve(id).resolve("0_" + task);
                final Path file = directory.resolve(".checkpoint");
                final List<String> lines = Files.exists(file) ? Files.readAllLines(file) : List.of("", "");
                System.out.printf("0_%d %s: %s, .checkpoint %s%n", task, when,
                    Files.exists(directory) ? "there" : "wiped", lines.size() > 2
                    ? lines.stream().skip(2).map(line -> line.replace(id + "-", "")).sorted().toList() : "none");
            }
        }

        void kill() throws InterruptedException {
            process.destroyForcibly().waitFor();
            System.out.println("SIGKILL");
        }
    }

    private static volatile boolean commitsTimeOut;
    private static volatile int closesLeft;

    /** Stops an orderly stop before a store is closed. Changes no setting. */
    public static final class Watcher implements RocksDBConfigSetter {
        @Override
        public void setConfig(final String store, final Options options, final Map<String, Object> configs) { }

        @Override
        public void close(final String store, final Options options) {
            if (commitsTimeOut && --closesLeft == 0) {
                System.out.println("about to close " + store);
                while (true) {
                    LockSupport.park();
                }
            }
        }
    }

    /** The usual clients; commits of transactions can be made to time out, as they do if the coordinator does not answer. */
    private static final class Clients implements KafkaClientSupplier {
        private final ByteArrayDeserializer bytes = new ByteArrayDeserializer();

        @Override
        public Admin getAdmin(final Map<String, Object> settings) {
            return Admin.create(settings);
        }

        @Override
        public Producer<byte[], byte[]> getProducer(final Map<String, Object> settings) {
            return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer()) {
                @Override
                public void commitTransaction() {
                    if (commitsTimeOut) {
                        System.out.println("the commit times out");
                        throw new TimeoutException("made to time out");
                    }
                    super.commitTransaction();
                }
            };
        }

        @Override
        public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> settings) {
            return new KafkaConsumer<>(settings, bytes, bytes);
        }

        @Override
        public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> settings) {
            return getConsumer(settings);
        }

        @Override
        public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> settings) {
            return getConsumer(settings);
        }
    }

    /** Counts every key in two stores. */
    private static final class Counting implements Processor<String, String, Void, Void> {
        private final List<KeyValueStore<String, Long>> stores = new ArrayList<>();
        private ProcessorContext<Void, Void> context;

        @Override
        public void init(final ProcessorContext<Void, Void> context) {
            this.context = context;
            stores.clear();
            STORES.forEach(store -> stores.add(context.getStateStore(store)));
        }

        @Override
        public void process(final Record<String, String> record) {
            for (final KeyValueStore<String, Long> store : stores) {
                final Long before = store.get(record.key());
                store.put(record.key(), before == null ? 1 : before + 1);
            }
            if (record.key().endsWith(LAST)) {
                System.out.println("processed all of " + context.taskId());
            }
        }
    }

    private static void application(
        final String bootstrap, final String id, final Path state, final String commitIntervalMs, final int closes)
        throws Exception {
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
        final KafkaStreams streams = new KafkaStreams(topology, settings, new Clients());
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
                    closesLeft = closes;
                    commitsTimeOut = true;
                    System.out.println("commits will time out");
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
