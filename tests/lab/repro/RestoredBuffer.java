import java.io.BufferedReader;
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
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * A join with a grace period loses what it holds back as soon as some of it is restored: Kafka Streams 3.6.0 and later,
 * see docs/found/restored-buffer.md.
 *
 * <pre>java -cp CLASSES:JARS RestoredBuffer BOOTSTRAP</pre>
 *
 * <p>The application runs in a process of its own. Each case ends with a line that begins with {@code LOST} or
 * {@code OK}.
 */
public final class RestoredBuffer {
    private static final int RECORDS = 15_000;
    private static final long BEGIN_MS = System.currentTimeMillis() - 86_400_000;
    private static final Duration GRACE = Duration.ofHours(1);

    private RestoredBuffer() { }

    public static void main(final String[] arguments) throws Exception {
        if (arguments.length == 3) {
            application(arguments[0], arguments[1], arguments[2]);
            return;
        }
        System.out.println("kafka-streams " + release());
        for (final End end : End.values()) {
            play(new Case(arguments[0]), end);
        }
        System.exit(0);
    }

    private enum End {
        KILLED("killed, started again"),
        CLOSED("closed in order, started again"),
        REMOVED("killed, its directory removed, started again");

        private final String words;

        End(final String words) {
            this.words = words;
        }
    }

    private static void play(final Case life, final End end) throws Exception {
        System.out.println("== " + end.words);
        life.start();
        life.await("running");
        life.produce("table", "product", "apple", BEGIN_MS);
        until("the table is read", () -> life.committed("table") == 1);
        for (int number = 0; number < RECORDS; number++) {
            life.produce("stream", "product", "order " + number, BEGIN_MS + 1 + number);
        }
        until("all is committed", () -> life.committed("stream") == RECORDS);
        if (end == End.CLOSED) {
            life.ask("close", "closed");
        }
        life.kill();
        System.out.println("  segments before: " + life.segments());
        if (end == End.REMOVED) {
            life.state = Files.createTempDirectory("restored-buffer");
        }
        life.start();
        life.await("running");
        life.produce("stream", "product", "last order", BEGIN_MS + 2 * GRACE.toMillis());
        until("the last order is committed", () -> life.committed("stream") == RECORDS + 1);
        final String joined = life.ask("count", "joined");
        System.out.println("  segments after: " + life.segments());
        life.kill();
        System.out.printf("%s %s: %d orders whose time is over, %s%n",
            joined.equals("joined: " + RECORDS) ? "OK" : "LOST", end.words, RECORDS, joined);
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
        private final String id = "restored-buffer-" + UUID.randomUUID();
        private Path state = Files.createTempDirectory("restored-buffer");
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private Process process;
        private BufferedReader answers;

        Case(final String bootstrap) throws Exception {
            this.bootstrap = bootstrap;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(
                new NewTopic(id + "-stream", 1, (short) 1), new NewTopic(id + "-table", 1, (short) 1))).all().get();
        }

        void start() throws IOException {
            process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"), "-cp", System.getProperty("java.class.path"),
                RestoredBuffer.class.getName(), bootstrap, id, state.toString())
                .redirectError(state.resolve("stderr").toFile()).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
        }

        void produce(final String topic, final String key, final String value, final long atMs) {
            producer.send(new ProducerRecord<>(id + "-" + topic, 0, atMs, key, value));
        }

        long committed(final String topic) throws Exception {
            final var offset = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get()
                .get(new TopicPartition(id + "-" + topic, 0));
            return offset == null ? 0 : offset.offset();
        }

        /** Names of the buffer's segments: the time at which each begins. */
        List<String> segments() throws IOException {
            try (var all = Files.list(state.resolve(id).resolve("0_0").resolve("held-back-Buffer"))) {
                return all.map(file -> file.getFileName().toString()).sorted().toList();
            }
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

    /** The application: joins orders with the product as it was at their time. */
    private static void application(final String bootstrap, final String id, final String state) throws Exception {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put("session.timeout.ms", 6_000);
        final Set<String> joined = ConcurrentHashMap.newKeySet();
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<String, String> products = builder.table(id + "-table",
            Materialized.as(Stores.persistentVersionedKeyValueStore("products", Duration.ofDays(2))));
        builder.<String, String>stream(id + "-stream")
            .join(products, (order, product) -> order,
                Joined.<String, String, String>as("held-back").withGracePeriod(GRACE))
            .foreach((key, order) -> joined.add(order));
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
                System.out.println("joined: " + joined.size());
            } else {
                streams.close();
                System.out.println("closed");
            }
        }
        Runtime.getRuntime().halt(0); // the other process is gone
    }
}
