import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * A task that is found corrupted while a rebalance is in progress aborts the transaction of its whole thread. The healthy
 * tasks go on behind their aborted records: Kafka Streams 2.6.0 and later, see docs/found/aborted-neighbour.md.
 *
 * <pre>java -cp CLASSES:JARS AbortedNeighbour BOOTSTRAP</pre>
 *
 * <p>Nothing is killed. Each case ends with a line that begins with {@code LOST}, {@code OK} or {@code UNDECIDED}.
 */
public final class AbortedNeighbour {
    private static final int KEYS = 500;
    private static final int PARTITIONS = 3;
    private static final String STORE = "counts";
    private static final String BUSY = "busy";
    private static final String LAST = "last";

    private AbortedNeighbour() { }

    public static void main(final String[] arguments) throws Exception {
        final String release = release();
        System.out.println("kafka-streams " + release);
        final String second = release.startsWith("2.") ? "exactly_once_beta" : "exactly_once_v2";
        play(arguments[0], second, true);
        play(arguments[0], second, false);
        if (release.startsWith("2.") || release.startsWith("3.")) {
            play(arguments[0], "exactly_once", true);
        }
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

    private static void play(final String bootstrap, final String guarantee, final boolean rebalance) throws Exception {
        final String what = guarantee + (rebalance ? ", during a rebalance" : ", no rebalance in progress");
        System.out.println("== " + what);
        try (Group group = new Group(bootstrap, guarantee)) {
            group.start("a");
            group.start("b");
            group.start("c");
            Map<String, Set<Integer>> owned = group.awaitStable(3);
            for (int partition = 0; partition < PARTITIONS; partition++) {
                group.produce(partition, KEYS);
            }
            group.awaitProcessed(PARTITIONS * KEYS);
            final int corrupted = owned.get("c").iterator().next();
            group.close("c");
            final Map<String, Set<Integer>> before = owned;
            owned = group.awaitStable(2);
            final String heir = owned.get("a").contains(corrupted) ? "a" : "b";
            final String other = heir.equals("a") ? "b" : "a";
            final int neighbour = before.get(heir).iterator().next();
            if (!owned.get(heir).contains(neighbour) || !owned.get(other).equals(before.get(other))) {
                System.out.println("UNDECIDED " + what + ": tasks were swapped");
                return;
            }
            System.out.printf("partition %d moves to %s, beside partition %d%n", corrupted, heir, neighbour);
            group.await(() -> group.restorations(heir, corrupted) >= 1, "restoration");
            if (rebalance) {
                group.send(before.get(other).iterator().next(), BUSY);
                group.await(() -> group.busy, "busy member");
                System.out.println(other + " is busy, so that the next rebalance has to wait for it");
                group.start("d");
                group.awaitRebalance();
            }
            group.deleteChangelog(corrupted);
            group.await(() -> group.restorations(heir, corrupted) >= 2, "second restoration");
            group.open = true;
            owned = group.awaitStable(rebalance ? 3 : 2);
            group.send(neighbour, LAST);
            group.await(() -> group.processed.contains(LAST), "last record");
            for (final String owner : owned.keySet()) {
                if (owned.get(owner).contains(neighbour)) {
                    System.out.printf("%s goes on with partition %d: %d keys are in its store%n",
                        owner, neighbour, group.keys(owner, "p" + neighbour + "-"));
                }
            }
            group.closeAll();
            System.out.printf("partition %d is committed up to offset %d%n", neighbour, group.committed(neighbour));
            System.out.println("one instance with an empty directory");
            group.start("e");
            group.awaitStable(1);
            group.await(() -> group.keys("e", LAST) == 1, "restoration");
            final int stored = group.keys("e", "p" + neighbour + "-");
            final int written = group.output("p" + neighbour + "-");
            System.out.printf("%s %s: of %d keys of the healthy task, %d are in its restored store, %d in its output%n",
                stored == KEYS && written == KEYS ? "OK" : "LOST", what, KEYS, stored, written);
        }
    }

    /** One application id with its topics and instances. */
    private static final class Group implements AutoCloseable {
        private final String bootstrap;
        private final String guarantee;
        private final String id = "aborted-neighbour-" + UUID.randomUUID();
        private final String output = id + "-output";
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private final Map<String, KafkaStreams> instances = new TreeMap<>();
        private final Map<String, Integer> restorations = new ConcurrentHashMap<>();
        private final Set<String> processed = ConcurrentHashMap.newKeySet();
        private volatile boolean busy;
        private volatile boolean open;

        Group(final String bootstrap, final String guarantee) throws Exception {
            this.bootstrap = bootstrap;
            this.guarantee = guarantee;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(
                new NewTopic(id, PARTITIONS, (short) 1), new NewTopic(output, 1, (short) 1))).all().get();
        }

        void start(final String name) throws Exception {
            final Properties settings = new Properties();
            settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
            settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
            settings.put(StreamsConfig.CLIENT_ID_CONFIG, name);
            settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
            settings.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("aborted-neighbour").toString());
            settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 300_000);
            settings.put(StreamsConfig.ACCEPTABLE_RECOVERY_LAG_CONFIG, 0L); // tasks stay where they are
            settings.put("producer.transaction.timeout.ms", 600_000);
            settings.put("session.timeout.ms", 6_000);
            settings.put("heartbeat.interval.ms", 500);
            settings.put("auto.offset.reset", "earliest");
            settings.put("producer.batch.size", 0); // small batches, so that a restoration has to fetch again and again
            settings.put("restore.consumer.max.poll.records", 1);
            settings.put("restore.consumer.max.partition.fetch.bytes", 1);
            final StreamsBuilder builder = new StreamsBuilder();
            builder.stream(id, Consumed.with(Serdes.String(), Serdes.String()))
                .peek((key, value) -> {
                    processed.add(key);
                    if (key.equals(BUSY)) {
                        busy = true;
                        while (!open) {
                            LockSupport.parkNanos(1_000_000);
                        }
                    }
                })
                .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as(STORE).withCachingDisabled()
                    .withLoggingEnabled(Map.of("cleanup.policy", "compact,delete"))) // lets deleteChangelog delete
                .toStream().to(output, Produced.with(Serdes.String(), Serdes.Long()));
            final KafkaStreams streams = new KafkaStreams(builder.build(settings), settings);
            streams.setGlobalStateRestoreListener(new StateRestoreListener() {
                @Override
                public void onRestoreStart(
                    final TopicPartition partition, final String store, final long from, final long to) {
                    if (to > 0) {
                        System.out.printf("%s: restores partition %d from offset %d to %d%n",
                            name, partition.partition(), from, to);
                    }
                    restorations.merge(name + partition.partition(), 1, Integer::sum);
                }

                @Override
                public void onBatchRestored(
                    final TopicPartition partition, final String store, final long end, final long count) {
                    if (!open) {
                        LockSupport.parkNanos(100_000_000); // a changelog that takes a while
                    }
                }

                @Override
                public void onRestoreEnd(final TopicPartition partition, final String store, final long count) { }
            });
            instances.put(name, streams);
            restorations.keySet().removeIf(key -> key.startsWith(name));
            streams.start();
        }

        int restorations(final String name, final int partition) {
            return restorations.getOrDefault(name + partition, 0);
        }

        void produce(final int partition, final int records) {
            for (int record = 0; record < records; record++) {
                producer.send(new ProducerRecord<>(id, partition, "p" + partition + "-" + record, "value"));
            }
            producer.flush();
        }

        void send(final int partition, final String key) {
            producer.send(new ProducerRecord<>(id, partition, key, "value"));
            producer.flush();
        }

        void awaitProcessed(final int keys) {
            await(() -> processed.size() == keys, "processing");
            System.out.println("each partition: " + KEYS + " keys are processed, nothing is committed");
        }

        /** Waits until the group is stable, has so many members and owns every partition; who owns what. */
        Map<String, Set<Integer>> awaitStable(final int members) {
            final Map<String, Set<Integer>> owned = new TreeMap<>();
            await(() -> {
                owned.clear();
                final ConsumerGroupDescription group = describe();
                group.members().forEach(member -> {
                    final Set<Integer> partitions = new TreeSet<>();
                    member.assignment().topicPartitions().forEach(each -> partitions.add(each.partition()));
                    owned.put(member.clientId().substring(0, 1), partitions);
                });
                return group.state().toString().equals("Stable") && owned.size() == members
                    && owned.values().stream().mapToInt(Set::size).sum() == PARTITIONS
                    && (open || owned.values().stream().noneMatch(Set::isEmpty))
                    && instances.values().stream().allMatch(each -> each.state() == KafkaStreams.State.RUNNING
                        || !open && each.state() == KafkaStreams.State.REBALANCING && members == 2);
            }, "stable group of " + members);
            System.out.println("partitions: " + owned);
            return owned;
        }

        /** Waits until a rebalance has begun and every member that is not busy has had its heartbeat. */
        void awaitRebalance() throws Exception {
            await(() -> describe().state().toString().equals("PreparingRebalance"), "rebalance");
            TimeUnit.SECONDS.sleep(4);
            System.out.println("a rebalance is in progress: " + describe().state());
        }

        private ConsumerGroupDescription describe() {
            try {
                return admin.describeConsumerGroups(List.of(id)).describedGroups().get(id).get();
            } catch (final Exception e) {
                throw new IllegalStateException(e);
            }
        }

        void deleteChangelog(final int partition) throws Exception {
            final TopicPartition changelog = new TopicPartition(id + "-" + STORE + "-changelog", partition);
            final long low = admin.deleteRecords(Map.of(changelog, RecordsToDelete.beforeOffset(-1)))
                .lowWatermarks().get(changelog).get().lowWatermark();
            System.out.printf("the changelog of partition %d is deleted up to offset %d%n", partition, low);
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

        /** Different keys with a prefix in the committed output. */
        int output(final String prefix) {
            final TopicPartition topic = new TopicPartition(output, 0);
            final Set<String> keys = new HashSet<>();
            try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed"),
                new StringDeserializer(), new LongDeserializer())) {
                consumer.assign(List.of(topic));
                consumer.seekToBeginning(List.of(topic));
                final long end = consumer.endOffsets(List.of(topic)).get(topic);
                while (consumer.position(topic) < end) {
                    consumer.poll(Duration.ofMillis(100)).forEach(each -> {
                        if (each.key().startsWith(prefix)) {
                            keys.add(each.key());
                        }
                    });
                }
            }
            return keys.size();
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

        void close(final String name) {
            instances.remove(name).close();
            System.out.println(name + ": closed");
        }

        void closeAll() {
            new ArrayList<>(instances.keySet()).forEach(this::close);
        }

        @Override
        public void close() {
            open = true;
            closeAll();
            producer.close();
            admin.close();
        }
    }
}
