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
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * A table that is restored from its source topic lacks records after an orderly close in the middle of the restoration:
 * Kafka Streams 3.0.1 and later, see docs/found/revived-task.md.
 *
 * <pre>java -cp CLASSES:JARS RevivedTask BOOTSTRAP</pre>
 *
 * <p>The application runs in a process of its own; no process is killed before it is closed. Each case ends with a line that
 * begins with {@code LOST} or {@code OK}.
 */
public final class RevivedTask {
    private static final int KEYS = 2_000;
    private static final String STORE = "table";
    private static final String BUSY = "busy";

    private RevivedTask() { }

    public static void main(final String[] arguments) throws Exception {
        if (arguments.length > 1) {
            application(arguments[0], arguments[1], Path.of(arguments[2]), arguments[3]);
            return;
        }
        System.out.println("kafka-streams " + release());
        play(new Case(arguments[0], "all"), "restored from its source topic");
        play(new Case(arguments[0], "none"), "with a changelog");
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

    private static void play(final Case life, final String what) throws Exception {
        System.out.println("== table " + what);
        life.start();
        life.produce(0, KEYS);
        life.awaitCommit(0, KEYS);
        life.send(1, BUSY);
        life.await("the other thread is busy");
        life.ask("fail", "the next commit will time out");
        life.produce(0, 1);
        life.await("restored up to offset");
        life.ask("close", "closed");
        life.end();
        life.start();
        life.awaitCommit(0, KEYS + 1);
        life.awaitCommit(1, 1);
        final String keys = life.ask("count", "keys: ");
        System.out.printf("%s table %s: %s of %d%n",
            keys.equals("keys: " + (KEYS + 2)) ? "OK" : "LOST", what, keys, KEYS + 2);
        life.end();
    }

    /** One application id with its topics, state directory and process. */
    private static final class Case {
        private final String bootstrap;
        private final String optimization;
        private final String id = "revived-task-" + UUID.randomUUID();
        private final Path state = Files.createTempDirectory("revived-task");
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private Process process;
        private BufferedReader answers;
        private long produced;

        Case(final String bootstrap, final String optimization) throws Exception {
            this.bootstrap = bootstrap;
            this.optimization = optimization;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(new NewTopic(id, 2, (short) 1))).all().get();
        }

        void start() throws IOException {
            process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"), "-cp", System.getProperty("java.class.path"),
                RevivedTask.class.getName(), bootstrap, id, state.toString(), optimization)
                .redirectError(state.resolve("stderr").toFile()).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
            await("running");
        }

        /** Produces records with keys of their own. */
        void produce(final int partition, final int records) {
            for (int record = 0; record < records; record++) {
                send(partition, "key" + produced++);
            }
        }

        void send(final int partition, final String key) {
            producer.send(new ProducerRecord<>(id, partition, key, "value"));
            producer.flush();
        }

        void awaitCommit(final int partition, final long offset) throws Exception {
            final TopicPartition input = new TopicPartition(id, partition);
            final Instant end = Instant.now().plusSeconds(120);
            while (true) {
                final var committed = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().get(input);
                if (committed != null && committed.offset() >= offset) {
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

        void end() throws InterruptedException {
            process.destroyForcibly().waitFor();
        }
    }

    private static volatile boolean commitTimesOut;
    private static volatile boolean corrupted;
    private static volatile boolean closing;

    /** The usual clients; one commit can be made to time out, as it does if the coordinator does not answer. */
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
                    if (commitTimesOut) {
                        commitTimesOut = false;
                        corrupted = true;
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

    /** Lets restoration pause after its first batch until the application is closing. */
    private static final class Restores implements StateRestoreListener {
        @Override
        public void onRestoreStart(
            final TopicPartition partition, final String store, final long from, final long to) {
            System.out.printf("restores from offset %d to %d%n", from, to);
        }

        @Override
        public void onBatchRestored(
            final TopicPartition partition, final String store, final long end, final long count) {
            if (corrupted) {
                if (!closing) {
                    System.out.println("restored up to offset " + end);
                }
                do {
                    LockSupport.parkNanos(200_000_000); // time for the closing thread to ask for the task
                } while (!closing);
            }
        }

        @Override
        public void onRestoreEnd(final TopicPartition partition, final String store, final long count) {
            System.out.printf("restored %d records%n", count);
        }
    }

    private static void application(
        final String bootstrap, final String id, final Path state, final String optimization) throws Exception {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, optimization);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put("session.timeout.ms", 6_000);
        settings.put("auto.offset.reset", "earliest");
        settings.put("restore.consumer.max.poll.records", 10);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.table(id, Consumed.with(Serdes.String(), Serdes.String()),
            Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(STORE).withCachingDisabled())
            .toStream().foreach((key, value) -> {
                if (key.equals(BUSY) && !closing) {
                    System.out.println("the other thread is busy");
                    while (!closing) {
                        LockSupport.parkNanos(1_000_000); // so the rebalance after the wipe has to wait for this thread
                    }
                }
            });
        final KafkaStreams streams = new KafkaStreams(builder.build(settings), settings, new Clients());
        streams.setGlobalStateRestoreListener(new Restores());
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
                    int keys = 0;
                    final ReadOnlyKeyValueStore<String, Object> store = streams.store(
                        StoreQueryParameters.fromNameAndType(STORE, QueryableStoreTypes.keyValueStore()));
                    try (KeyValueIterator<String, Object> all = store.all()) {
                        for (; all.hasNext(); all.next()) {
                            keys++;
                        }
                    }
                    System.out.println("keys: " + keys);
                    break;
                case "fail":
                    commitTimesOut = true;
                    System.out.println("the next commit will time out");
                    break;
                default:
                    final Thread closer = new Thread(streams::close);
                    closer.start();
                    while (streams.state().isRunningOrRebalancing()) {
                        LockSupport.parkNanos(1_000_000);
                    }
                    closing = true;
                    closer.join();
                    System.out.println("closed");
            }
        }
        Runtime.getRuntime().halt(0); // the other process is gone
    }
}
