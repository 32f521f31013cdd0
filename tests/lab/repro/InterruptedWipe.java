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
 * Exactly-once is broken by a kill between the close of a corrupted task and its wipe: Kafka Streams 3.8.0 to 4.3.1, and
 * 4.4.0 with transactional stores, see docs/found/interrupted-wipe.md.
 *
 * <pre>java -cp CLASSES:JARS InterruptedWipe BOOTSTRAP</pre>
 *
 * <p>The application runs in a process of its own, which is killed. Each case ends with a line that begins with
 * {@code LOST} or {@code OK}.
 */
public final class InterruptedWipe {
    private static final int KEYS = 200;
    private static final String LAST = "-" + (KEYS - 1);
    private static final List<String> STORES = List.of("counts-a", "counts-b");

    private InterruptedWipe() { }

    public static void main(final String[] arguments) throws Exception {
        if (arguments.length > 1) {
            application(arguments[0], arguments[1], Path.of(arguments[2]), arguments[3], arguments[4]);
            return;
        }
        System.out.println("kafka-streams " + release());
        play(new Case(arguments[0], false), "key");
        play(new Case(arguments[0], true), "other");
        System.exit(0); // the application ends with its input
    }

    private static void play(final Case life, final String second) throws Exception {
        System.out.println("== exactly_once_v2" + (life.transactional ? ", enable.transactional.statestores" : ""));
        System.out.println("== first life: every key once, committed, orderly close");
        life.start("100");
        life.produce("key");
        life.awaitCommit();
        life.ask("close", "closed");
        life.kill();
        System.out.println("== second life: " + (second.equals("key") ? "every key again" : "as many other keys")
            + ", the commit times out twice: the task is corrupted");
        life.start("600000");
        life.ask("fail", "commits will time out");
        life.showCheckpoint("while it runs");
        life.produce(second);
        life.await("inside the close");
        life.showCheckpoint("inside the close");
        life.kill();
        System.out.println("== third life");
        life.start("100");
        life.awaitCommit();
        final String counts = life.ask("count", "keys by count: ");
        life.kill();
        final String each = second.equals("key") ? "{2=" + KEYS + "}" : "{1=" + 2 * KEYS + "}";
        final boolean right = counts.equals("keys by count: {counts-a=" + each + ", counts-b=" + each + "}");
        System.out.printf("%s %s: right is %s in both; %s%n", right ? "OK" : "LOST",
            life.transactional ? "with transactional stores" : "exactly_once_v2", each, counts);
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
        private final boolean transactional;
        private final String id = "interrupted-wipe-" + UUID.randomUUID();
        private final Path state = Files.createTempDirectory("interrupted-wipe");
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private Process process;
        private BufferedReader answers;
        private long produced;

        Case(final String bootstrap, final boolean transactional) throws Exception {
            this.bootstrap = bootstrap;
            this.transactional = transactional;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(new NewTopic(id, 1, (short) 1))).all().get();
        }

        void start(final String commitIntervalMs) throws IOException {
            process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"), "-cp", System.getProperty("java.class.path"),
                InterruptedWipe.class.getName(), bootstrap, id, state.toString(), commitIntervalMs,
                Boolean.toString(transactional))
                .redirectError(state.resolve("stderr").toFile()).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
            await("running");
        }

        void produce(final String prefix) {
            for (int key = 0; key < KEYS; key++) {
                producer.send(new ProducerRecord<>(id, 0, prefix + "-" + key, ""));
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

        /** Up to 4.2: offsets are in a file. From 4.3 on they are in the stores, and there is none. */
        void showCheckpoint(final String when) throws IOException {
            final Path file = state.resolve(id).resolve("0_0").resolve(".checkpoint");
            final List<String> lines = Files.exists(file) ? Files.readAllLines(file) : List.of("", "");
            System.out.printf(".checkpoint %s: %s%n", when, lines.size() > 2
                ? lines.stream().skip(2).map(line -> line.replace(id + "-", "")).sorted().toList() : "none");
        }

        void kill() throws InterruptedException {
            process.destroyForcibly().waitFor();
            System.out.println("SIGKILL");
        }
    }

    private static volatile boolean stopsInDirtyClose;
    private static volatile boolean commitsTimeOut;

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

    /** Counts every key in two stores, and asks for a commit after the last key. */
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
                context.commit();
            }
        }
    }

    private static void application(
        final String bootstrap, final String id, final Path state, final String commitIntervalMs,
        final String transactional) throws Exception {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitIntervalMs);
        settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Watcher.class);
        settings.put("enable.transactional.statestores", transactional); // earlier releases than 4.4 do not know it
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
                    stopsInDirtyClose = true;
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
