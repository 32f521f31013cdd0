import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * A versioned store forgets a deletion that has the timestamp of the record that it deletes: a record that is older than
 * both, and comes later, becomes the latest one. Kafka Streams 3.5 and later, see docs/found/forgotten-tombstone.md.
 *
 * <pre>java -cp CLASSES:JARS ForgottenTombstone BOOTSTRAP</pre>
 *
 * <p>Nothing is killed. Each case ends with a line that begins with {@code LOST} or {@code OK}.
 */
public final class ForgottenTombstone {
    private static final String STORE = "versioned";
    private static final int KEYS = 100;
    private static final Duration RETENTION = Duration.ofHours(1);

    /** What is sent for each key of a case, in this order: milliseconds after the common time, and whether it deletes. */
    private enum Case {
        SAME("deleted in the millisecond of its record", new long[] {0, 0, -5_000}),
        LATER("deleted one millisecond later", new long[] {0, 1, -5_000}),
        UPDATED("updated before, deleted in the millisecond of its record", new long[] {-8_000, 0, 0, -5_000});

        private final String title;
        private final long[] times;

        Case(final String title, final long[] times) {
            this.title = title;
            this.times = times;
        }

        String key(final int number) {
            return name() + number;
        }

        /** The last record but one deletes, the last one is the older one that comes later. */
        String value(final int record) {
            return record == times.length - 2 ? null : record == times.length - 1 ? "older" : "newer";
        }
    }

    private final String bootstrap;
    private final String id = "forgotten-tombstone-" + UUID.randomUUID();
    private final TopicPartition table = new TopicPartition(id + "-table", 0);
    private final TopicPartition questions = new TopicPartition(id + "-questions", 0);
    private final Path state = Files.createTempDirectory("forgotten-tombstone");
    private final AdminClient admin;
    private final KafkaProducer<String, String> producer;
    private final Map<String, String> answers = new ConcurrentHashMap<>();
    private volatile boolean isRunning;
    private final Map<TopicPartition, Long> produced = new HashMap<>();

    private ForgottenTombstone(final String bootstrap) throws Exception {
        this.bootstrap = bootstrap;
        final Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        admin = AdminClient.create(settings);
        producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        admin.createTopics(Arrays.asList(
            new NewTopic(table.topic(), 1, (short) 1), new NewTopic(questions.topic(), 1, (short) 1))).all().get();
    }

    public static void main(final String[] arguments) throws Exception {
        System.out.println("kafka-streams " + release());
        new ForgottenTombstone(arguments[0]).play();
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

    private void play() throws Exception {
        final long now = System.currentTimeMillis();
        KafkaStreams streams = start();
        for (final Case each : Case.values()) {
            for (int record = 0; record < each.times.length; record++) {
                for (int number = 0; number < KEYS; number++) {
                    produce(table, now + each.times[record], each.key(number), each.value(record));
                }
            }
        }
        await(() -> isCommitted(table));
        final Map<Case, Integer> back = ask();
        streams.close(Duration.ofSeconds(60));
        System.out.println("  closed, in order; the state directory is " + state);
        streams = start(state.resolve("again"));
        final Map<Case, Integer> restored = ask();
        streams.close(Duration.ofSeconds(60));
        for (final Case each : Case.values()) {
            System.out.printf("%s %s: of %d deleted keys %d have an older value, restored %d%n",
                back.get(each) == 0 && restored.get(each) == 0 ? "OK" : "LOST",
                each.title, KEYS, back.get(each), restored.get(each));
        }
        producer.close();
        admin.close();
    }

    private KafkaStreams start() throws Exception {
        return start(state);
    }

    private KafkaStreams start(final Path directory) throws Exception {
        isRunning = false;
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, directory.toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put("auto.offset.reset", "earliest");
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.table(table.topic(), Consumed.with(Serdes.String(), Serdes.String()),
            Materialized.<String, String>as(Stores.persistentVersionedKeyValueStore(STORE, RETENTION)));
        builder.<String, String>stream(questions.topic()).process(Answer::new, STORE);
        final KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> isRunning = now == KafkaStreams.State.RUNNING);
        streams.start();
        await(() -> isRunning);
        System.out.println("  running");
        return streams;
    }

    /** Gives how many keys of each case the store has. */
    private Map<Case, Integer> ask() throws Exception {
        answers.clear();
        final List<String> keys = new ArrayList<>();
        for (final Case each : Case.values()) {
            for (int number = 0; number < KEYS; number++) {
                keys.add(each.key(number));
            }
        }
        for (final String key : keys) {
            produce(questions, System.currentTimeMillis(), key, "?");
        }
        await(() -> answers.size() == keys.size());
        final Map<Case, Integer> found = new HashMap<>();
        for (final Case each : Case.values()) {
            int held = 0;
            for (int number = 0; number < KEYS; number++) {
                held += answers.get(each.key(number)).isEmpty() ? 0 : 1;
            }
            System.out.printf("  %s: get(%s) is %s%n", each.title, each.key(0), answers.get(each.key(0)));
            found.put(each, held);
        }
        return found;
    }

    private void produce(final TopicPartition to, final long at, final String key, final String value) {
        producer.send(new ProducerRecord<>(to.topic(), to.partition(), at, key, value));
        produced.merge(to, 1L, Long::sum);
    }

    private boolean isCommitted(final TopicPartition partition) {
        try {
            final OffsetAndMetadata committed =
                admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().get(partition);
            return committed != null && committed.offset() >= produced.get(partition);
        } catch (final Exception notYet) {
            return false;
        }
    }

    private static void await(final BooleanSupplier seen) throws Exception {
        final Instant end = Instant.now().plusSeconds(120);
        while (!seen.getAsBoolean()) {
            if (Instant.now().isAfter(end)) {
                throw new IllegalStateException("waited for two minutes");
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
    }

    /** Looks a key up in the store of the table. */
    private final class Answer extends ContextualProcessor<String, String, Void, Void> {
        @Override
        public void process(final Record<String, String> question) {
            final VersionedKeyValueStore<String, String> store = context().getStateStore(STORE);
            final VersionedRecord<String> latest = store.get(question.key());
            answers.put(question.key(), latest == null ? "" : latest.value() + "@" + latest.timestamp());
        }
    }
}
