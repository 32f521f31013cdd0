import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
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
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * A store lacks what another instance wrote to its changelog while this one was paused for so long that it lost its task:
 * at-least-once, Kafka Streams up to 2.5, see docs/found/overtaken-owner.md.
 *
 * <pre>java -cp CLASSES:JARS OvertakenOwner BOOTSTRAP</pre>
 *
 * <p>Two instances in one process, each with a state directory of its own. No process is killed, and each instance is closed
 * in order. Each case ends with a line that begins with {@code LOST} or {@code OK}.
 */
public final class OvertakenOwner {
    private static final String STORE = "counts";
    private static final String PAUSE = "pause";
    private static final int BEFORE = 100;
    private static final int MEANWHILE = 500;

    private OvertakenOwner() { }

    public static void main(final String[] arguments) throws Exception {
        System.out.println("kafka-streams " + release());
        new Case(arguments[0], StreamsConfig.AT_LEAST_ONCE).play();
        new Case(arguments[0], StreamsConfig.EXACTLY_ONCE).play();
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

    /** One application id with its topic and two instances. */
    private static final class Case {
        private final String bootstrap;
        private final String guarantee;
        private final String id = "overtaken-owner-" + UUID.randomUUID();
        private final TopicPartition input = new TopicPartition(id, 0);
        private final AdminClient admin;
        private final KafkaProducer<String, String> producer;
        private long produced;

        Case(final String bootstrap, final String guarantee) throws Exception {
            this.bootstrap = bootstrap;
            this.guarantee = guarantee;
            final Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", bootstrap);
            admin = AdminClient.create(settings);
            producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
            admin.createTopics(Collections.singleton(new NewTopic(id, 1, (short) 1))).all().get();
        }

        void play() throws Exception {
            System.out.println("== " + guarantee);
            final Instance a = new Instance("a", this);
            produce(BEFORE);
            awaitCommit(BEFORE);
            send(PAUSE);
            a.await("is paused", () -> a.paused);
            final Instance b = new Instance("b", this);
            produce(MEANWHILE);
            awaitCommit(BEFORE + 1 + MEANWHILE);
            System.out.println("  b: has committed everything");
            a.goesOn = true;
            System.out.println("  a: goes on");
            a.await("has joined again", () -> a.joinedAgain);
            b.close();
            final int keys = a.count();
            a.close();
            System.out.printf("%s %s: a holds %d of %d keys%n",
                keys == BEFORE + 1 + MEANWHILE ? "OK" : "LOST", guarantee, keys, BEFORE + 1 + MEANWHILE);
            producer.close();
            admin.close();
        }

        /** Produces records with keys of their own. */
        void produce(final int records) {
            for (int record = 0; record < records; record++) {
                producer.send(new ProducerRecord<>(id, "key" + produced++, "value"));
            }
            producer.flush();
        }

        void send(final String key) {
            producer.send(new ProducerRecord<>(id, key, "value"));
            producer.flush();
        }

        void awaitCommit(final long offset) throws Exception {
            final Instant end = Instant.now().plusSeconds(180);
            while (true) {
                final OffsetAndMetadata committed =
                    admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().get(input);
                if (committed != null && committed.offset() >= offset) {
                    return;
                }
                if (Instant.now().isAfter(end)) {
                    throw new IllegalStateException("not all records are committed: " + committed);
                }
                TimeUnit.MILLISECONDS.sleep(50);
            }
        }
    }

    /** One instance of the application; the first one pauses at one record. */
    private static final class Instance {
        private final String name;
        private final KafkaStreams streams;
        private volatile boolean paused;
        private volatile boolean goesOn;
        private volatile boolean joinedAgain;

        Instance(final String name, final Case life) throws Exception {
            this.name = name;
            final Path state = Files.createTempDirectory("overtaken-owner-" + name);
            final Properties settings = new Properties();
            settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, life.bootstrap);
            settings.put(StreamsConfig.APPLICATION_ID_CONFIG, life.id);
            settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, life.guarantee);
            settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
            settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
            settings.put("session.timeout.ms", 6_000);
            settings.put("max.poll.interval.ms", 6_000); // a pause of the thread; one of the process does the same
            settings.put("auto.offset.reset", "earliest");
            settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
            settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
            final StreamsBuilder builder = new StreamsBuilder();
            final KStream<String, String> records = builder.stream(life.id);
            records.peek((key, value) -> pauseAt(key)).groupByKey()
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(STORE).withCachingDisabled());
            streams = new KafkaStreams(builder.build(), settings);
            streams.setGlobalStateRestoreListener(new Restores(name));
            streams.setStateListener((now, before) -> {
                if (now == KafkaStreams.State.RUNNING) {
                    joinedAgain = goesOn;
                    System.out.printf("  %s: running%n", name);
                }
            });
            streams.start();
        }

        private void pauseAt(final String key) {
            if (!name.equals("a") || !key.equals(PAUSE)) {
                return;
            }
            paused = true;
            while (!goesOn) {
                try {
                    TimeUnit.MILLISECONDS.sleep(10);
                } catch (final InterruptedException ended) {
                    return;
                }
            }
        }

        void await(final String what, final BooleanSupplier seen) throws Exception {
            final Instant end = Instant.now().plusSeconds(180);
            while (!seen.getAsBoolean()) {
                if (Instant.now().isAfter(end)) {
                    throw new IllegalStateException(name + " never " + what);
                }
                TimeUnit.MILLISECONDS.sleep(10);
            }
            System.out.printf("  %s: %s%n", name, what);
        }

        /** Counts the keys once the store can be read and does not grow any more. */
        int count() throws Exception {
            final Instant end = Instant.now().plusSeconds(120);
            int last = -1;
            while (true) {
                TimeUnit.SECONDS.sleep(3);
                final int keys = keys();
                if (keys >= 0 && keys == last) {
                    return keys;
                }
                if (Instant.now().isAfter(end)) {
                    throw new IllegalStateException(name + " has no store");
                }
                last = keys;
            }
        }

        private int keys() {
            int keys = 0;
            try (KeyValueIterator<String, Long> all =
                streams.store(STORE, QueryableStoreTypes.<String, Long>keyValueStore()).all()) {
                for (; all.hasNext(); all.next()) {
                    keys++;
                }
                return keys;
            } catch (final InvalidStateStoreException notYet) {
                return -1;
            }
        }

        void close() {
            streams.close(Duration.ofSeconds(60));
            System.out.printf("  %s: closed%n", name);
        }
    }

    /** Says what is restored. */
    private static final class Restores implements StateRestoreListener {
        private final String name;

        Restores(final String name) {
            this.name = name;
        }

        @Override
        public void onRestoreStart(
            final TopicPartition partition, final String store, final long from, final long to) {
            System.out.printf("  %s: restores from offset %d to %d%n", name, from, to);
        }

        @Override
        public void onBatchRestored(
            final TopicPartition partition, final String store, final long end, final long count) { }

        @Override
        public void onRestoreEnd(final TopicPartition partition, final String store, final long count) {
            System.out.printf("  %s: restored %d records%n", name, count);
        }
    }
}
