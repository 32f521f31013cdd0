import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
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
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * A commit times out while a task is given up, or twice in a row. The tasks that stay are to start again from what was
 * committed, but go on where they were: Kafka Streams 3.8.0 and later, see docs/found/skipped-input.md.
 *
 * <pre>java -cp CLASSES:JARS SkippedInput BOOTSTRAP</pre>
 *
 * <p>Nothing is killed. Each case ends with a line that begins with {@code LOST}, {@code OK} or {@code UNDECIDED}.
 */
public final class SkippedInput {
    private static final int KEYS = 500;
    private static final int PARTITIONS = 2;
    private static final String STORE = "counts";
    private static final String EXACTLY_ONCE = "exactly_once_v2";

    private SkippedInput() { }

    public static void main(final String[] arguments) throws Exception {
        System.out.println("kafka-streams " + release());
        play(arguments[0], EXACTLY_ONCE, true);
        play(arguments[0], EXACTLY_ONCE, false);
        play(arguments[0], "at_least_once", true);
        playAlone(arguments[0], 2);
        playAlone(arguments[0], 1);
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

    private static void play(final String bootstrap, final String guarantee, final boolean timesOut) throws Exception {
        final String what = guarantee + (timesOut ? ", the commit times out" : ", the commit succeeds");
        System.out.println("== " + what);
        try (Group group = new Group(bootstrap, guarantee, 300_000)) {
            group.start("a");
            group.awaitStable(1);
            if (guarantee.equals(EXACTLY_ONCE)) {
                group.produce(0, KEYS);
                group.awaitProcessed(PARTITIONS * KEYS);
            } else {
                // the task waits for the other topic with half of its records in its buffer
                group.produce(0, KEYS / 2);
                group.pace(KEYS / 2);
                group.produce(KEYS / 2, KEYS);
                group.awaitProcessed(PARTITIONS * (KEYS / 2 + 1));
                LockSupport.parkNanos(2_000_000_000); // time to fetch the second half
            }
            group.timeOuts.set(timesOut ? 1 : 0);
            group.start("b");
            final Map<String, Set<Integer>> owned = group.awaitStable(2);
            final int kept = owned.get("a").iterator().next();
            System.out.printf("a keeps partition %d%n", kept);
            group.produce(KEYS, KEYS + 1);
            group.pace(KEYS + 1);
            group.await(() -> group.processed.contains(key(kept, KEYS)), "last record");
            group.closeAll();
            System.out.printf("partition %d is committed up to offset %d of %d%n", kept, group.committed(kept), KEYS + 1);
            System.out.println("one instance with an empty directory");
            group.start("c");
            group.awaitStable(1);
            group.await(() -> group.keys("c", key(kept, KEYS)) == 1, "restoration");
            final int stored = group.keys("c", "p" + kept + "-");
            System.out.printf("%s %s: of %d keys of the task that stayed, %d are counted%n",
                stored == KEYS + 1 ? "OK" : "LOST", what, KEYS + 1, stored);
        }
    }

    /** One instance only: commits in a row time out. */
    private static void playAlone(final String bootstrap, final int timeOuts) throws Exception {
        final String what = EXACTLY_ONCE + ", alone, commits that time out: " + timeOuts;
        System.out.println("== " + what);
        try (Group group = new Group(bootstrap, EXACTLY_ONCE, 10_000)) {
            group.timeOuts.set(timeOuts);
            group.produce(0, KEYS);
            group.start("a");
            group.awaitProcessed(PARTITIONS * KEYS);
            group.await(() -> group.timeOuts.get() == 0, "commit that times out");
            group.awaitStable(1);
            group.produce(KEYS, KEYS + 1);
            group.await(() -> group.processed.contains(key(0, KEYS)), "last record");
            group.closeAll();
            System.out.printf("partition 0 is committed up to offset %d of %d%n", group.committed(0), KEYS + 1);
            System.out.println("one instance with an empty directory");
            group.start("c");
            group.awaitStable(1);
            group.await(() -> group.keys("c", key(0, KEYS)) == 1, "restoration");
            final int stored = group.keys("c", "p0-");
            System.out.printf("%s %s: of %d keys of partition 0, %d are counted%n",
                stored == KEYS + 1 ? "OK" : "LOST", what, KEYS + 1, stored);
        }
    }

    private static String key(final int partition, final int number) {
        return "p" + partition + "-" + number + "-";
    }

    /** One application id with its topics and instances. */
    private static final class Group implements AutoCloseable {
        private final String bootstrap;
        private final String guarantee;
        private final String id = "skipped-input-" + UUID.randomUUID();
        private final String paces = id + "-paces";
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private final Map<String, KafkaStreams> instances = new TreeMap<>();
        private final Set<String> processed = ConcurrentHashMap.newKeySet();
        private final int commitIntervalMs;
        private final AtomicInteger timeOuts = new AtomicInteger();

        Group(final String bootstrap, final String guarantee, final int commitIntervalMs) throws Exception {
            this.commitIntervalMs = commitIntervalMs;
            this.bootstrap = bootstrap;
            this.guarantee = guarantee;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(
                new NewTopic(id, PARTITIONS, (short) 1), new NewTopic(paces, PARTITIONS, (short) 1))).all().get();
        }

        void start(final String name) throws Exception {
            final Properties settings = new Properties();
            settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
            settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
            settings.put(StreamsConfig.CLIENT_ID_CONFIG, name);
            settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
            settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("skipped-input").toString());
            settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitIntervalMs);
            final boolean waits = !guarantee.equals(EXACTLY_ONCE) && !name.equals("c");
            settings.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, waits ? 600_000L : 0L);
            settings.put("producer.transaction.timeout.ms", 600_000);
            settings.put("session.timeout.ms", 6_000);
            settings.put("heartbeat.interval.ms", 500);
            settings.put("auto.offset.reset", "earliest");
            final StreamsBuilder builder = new StreamsBuilder();
            builder.stream(List.of(id, paces), Consumed.with(Serdes.String(), Serdes.String()))
                .peek((key, value) -> processed.add(key))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(STORE).withCachingDisabled());
            final KafkaStreams streams = new KafkaStreams(builder.build(settings), settings, new Clients());
            instances.put(name, streams);
            streams.start();
        }

        /** Sends keys of their own to every partition; their numbers are their times. */
        void produce(final int from, final int to) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                for (int number = from; number < to; number++) {
                    producer.send(new ProducerRecord<>(id, partition, (long) number, key(partition, number), "value"));
                }
            }
            producer.flush();
        }

        /** Sends a record to every partition of the other topic, until whose time a task that waits for it may go. */
        void pace(final int number) {
            for (int partition = 0; partition < PARTITIONS; partition++) {
                producer.send(new ProducerRecord<>(
                    paces, partition, (long) number, "pace" + partition + "-" + number, "value"));
            }
            producer.flush();
        }

        void awaitProcessed(final int keys) {
            await(() -> processed.size() >= keys, "processing");
            System.out.println(processed.size() + " records are processed, nothing is committed");
        }

        /** Waits until the group is stable, has so many members and owns every partition; who owns what. */
        Map<String, Set<Integer>> awaitStable(final int members) {
            final Map<String, Set<Integer>> owned = new TreeMap<>();
            await(() -> {
                owned.clear();
                final ConsumerGroupDescription group = describe().orElse(null);
                if (group == null) {
                    return false;
                }
                group.members().forEach(member -> {
                    final Set<Integer> partitions = new TreeSet<>();
                    member.assignment().topicPartitions().stream().filter(each -> each.topic().equals(id))
                        .forEach(each -> partitions.add(each.partition()));
                    owned.put(member.clientId().substring(0, 1), partitions);
                });
                return group.state().toString().equals("Stable") && owned.size() == members
                    && owned.values().stream().mapToInt(Set::size).sum() == PARTITIONS
                    && owned.values().stream().noneMatch(Set::isEmpty)
                    && instances.values().stream().allMatch(each -> each.state() == KafkaStreams.State.RUNNING);
            }, "stable group of " + members);
            System.out.println("partitions: " + owned);
            return owned;
        }

        /** Describes the group; nothing, as long as the coordinator does not know it. */
        private Optional<ConsumerGroupDescription> describe() {
            try {
                return Optional.of(admin.describeConsumerGroups(List.of(id)).describedGroups().get(id).get());
            } catch (final Exception e) {
                if (e.getCause() instanceof GroupIdNotFoundException) {
                    return Optional.empty();
                }
                throw new IllegalStateException(e);
            }
        }

        long committed(final int partition) throws Exception {
            return admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get()
                .get(new TopicPartition(id, partition)).offset();
        }

        int keys(final String name, final String prefix) {
            final ReadOnlyKeyValueStore<String, Long> store;
            try {
                store = instances.get(name).store(
                    StoreQueryParameters.fromNameAndType(STORE, QueryableStoreTypes.keyValueStore()));
            } catch (final InvalidStateStoreException restoring) {
                return 0;
            }
            int keys = 0;
            try (KeyValueIterator<String, Long> all = store.all()) {
                while (all.hasNext()) {
                    if (all.next().key.startsWith(prefix)) {
                        keys++;
                    }
                }
            }
            return keys;
        }

        void await(final BooleanSupplier condition, final String what) {
            final Instant end = Instant.now().plusSeconds(120);
            while (!condition.getAsBoolean()) {
                if (Instant.now().isAfter(end)) {
                    throw new IllegalStateException("no " + what + " after two minutes");
                }
                LockSupport.parkNanos(50_000_000);
            }
        }

        void closeAll() {
            for (final String name : new ArrayList<>(instances.keySet())) {
                instances.remove(name).close();
                System.out.println(name + ": closed");
            }
        }

        @Override
        public void close() {
            closeAll();
            producer.close();
            admin.close();
        }

        private void maybeTimeOut() {
            if (timeOuts.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
                System.out.println("the commit times out");
                throw new TimeoutException("made to time out");
            }
        }

        /** The usual clients; one commit can be made to time out, as it does if the coordinator does not answer. */
        private final class Clients implements KafkaClientSupplier {
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
                        maybeTimeOut();
                        super.commitTransaction();
                    }
                };
            }

            @Override
            public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> settings) {
                return new KafkaConsumer<>(settings, bytes, bytes) {
                    @Override
                    public void commitSync(final Map<TopicPartition, OffsetAndMetadata> offsets) {
                        maybeTimeOut();
                        super.commitSync(offsets);
                    }
                };
            }

            @Override
            public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> settings) {
                return new KafkaConsumer<>(settings, bytes, bytes);
            }

            @Override
            public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> settings) {
                return new KafkaConsumer<>(settings, bytes, bytes);
            }
        }
    }
}
