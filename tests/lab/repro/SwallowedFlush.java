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
 * A store lacks records whose flush failed, although the commit that flushed it succeeded: Kafka Streams 2.4 and 2.5, see
 * docs/found/swallowed-flush.md.
 *
 * <pre>java -cp CLASSES:JARS SwallowedFlush BOOTSTRAP</pre>
 *
 * <p>The store's directory is moved away for one commit and put back, which stands for a full volume or any other error of
 * the disk that passes. No process is killed. Each case ends with a line that begins with {@code LOST} or {@code OK}.
 */
public final class SwallowedFlush {
    private static final String STORE = "counts";
    private static final int BEFORE = 100;
    private static final int MEANWHILE = 500;

    private SwallowedFlush() { }

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

    /** One application id with its topic and state directory. */
    private static final class Case {
        private final String bootstrap;
        private final String guarantee;
        private final String id = "swallowed-flush-" + UUID.randomUUID();
        private final Path state = Files.createTempDirectory("swallowed-flush");
        private final TopicPartition input = new TopicPartition(id, 0);
        private final AdminClient admin;
        private final KafkaProducer<String, String> producer;
        private volatile boolean isRunning;
        private volatile boolean hasFailed;
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
            KafkaStreams streams = start();
            produce(BEFORE);
            await(() -> isCommitted(BEFORE));
            final Path store = state.resolve(id).resolve("0_0").resolve("rocksdb").resolve(STORE);
            final Path away = state.resolve("away");
            Files.move(store, away);
            System.out.println("  the store's directory is away");
            produce(MEANWHILE);
            await(() -> hasFailed || isCommitted(BEFORE + MEANWHILE));
            System.out.println(hasFailed ? "  the thread has failed" : "  everything is committed");
            if (hasFailed) {
                streams.close(Duration.ofSeconds(60)); // its thread is gone; exactly-once has wiped the task
            }
            if (Files.isDirectory(store.getParent())) {
                Files.move(away, store);
                System.out.println("  the store's directory is back");
            }
            streams.close(Duration.ofSeconds(60));
            System.out.println("  closed");
            streams = start();
            await(() -> isCommitted(BEFORE + MEANWHILE));
            final int keys = keys(streams);
            System.out.printf("%s %s: %d of %d keys%n",
                keys == BEFORE + MEANWHILE ? "OK" : "LOST", guarantee, keys, BEFORE + MEANWHILE);
            streams.close(Duration.ofSeconds(60));
            producer.close();
            admin.close();
        }

        private KafkaStreams start() throws Exception {
            isRunning = false;
            hasFailed = false;
            final Properties settings = new Properties();
            settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
            settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
            settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
            settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
            settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 3_000); // all records in one commit
            settings.put("auto.offset.reset", "earliest");
            settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
            settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
            final StreamsBuilder builder = new StreamsBuilder();
            final KStream<String, String> records = builder.stream(id);
            records.groupByKey()
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(STORE).withCachingDisabled());
            final KafkaStreams streams = new KafkaStreams(builder.build(), settings);
            streams.setUncaughtExceptionHandler((thread, error) -> hasFailed = true);
            streams.setGlobalStateRestoreListener(new Restores());
            streams.setStateListener((now, before) -> isRunning = now == KafkaStreams.State.RUNNING);
            streams.start();
            await(() -> isRunning);
            System.out.println("  running");
            return streams;
        }

        /** Produces records with keys of their own, all in one batch. */
        private void produce(final int records) {
            for (int record = 0; record < records; record++) {
                producer.send(new ProducerRecord<>(id, "key" + produced++, "value"));
            }
            producer.flush();
        }

        private boolean isCommitted(final long offset) {
            try {
                final OffsetAndMetadata committed =
                    admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().get(input);
                return committed != null && committed.offset() >= offset;
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

        private static int keys(final KafkaStreams streams) throws Exception {
            final int[] keys = new int[1];
            await(() -> {
                keys[0] = 0;
                try (KeyValueIterator<String, Long> all =
                    streams.store(STORE, QueryableStoreTypes.<String, Long>keyValueStore()).all()) {
                    for (; all.hasNext(); all.next()) {
                        keys[0]++;
                    }
                    return true;
                } catch (final InvalidStateStoreException notYet) {
                    return false;
                }
            });
            return keys[0];
        }
    }

    /** Says what is restored. */
    private static final class Restores implements StateRestoreListener {
        @Override
        public void onRestoreStart(
            final TopicPartition partition, final String store, final long from, final long to) {
            System.out.printf("  restores from offset %d to %d%n", from, to);
        }

        @Override
        public void onBatchRestored(
            final TopicPartition partition, final String store, final long end, final long count) { }

        @Override
        public void onRestoreEnd(final TopicPartition partition, final String store, final long count) {
            System.out.printf("  restored %d records%n", count);
        }
    }
}
