import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;

/**
 * After every start a versioned store does not find its older versions: Kafka Streams 3.5.0 and later, see
 * docs/found/unknown-segments.md.
 *
 * <pre>java -cp CLASSES:JARS UnknownSegments BOOTSTRAP</pre>
 *
 * <p>Nothing is killed. Each case ends with a line that begins with {@code LOST} or {@code OK}.
 */
public final class UnknownSegments {
    private static final long HOUR_MS = 3_600_000;
    private static final long BEGIN_MS = System.currentTimeMillis() - 10 * HOUR_MS;
    private static final String STORE = "prices";
    private static final LinkedBlockingQueue<String> ANSWERS = new LinkedBlockingQueue<>();

    private UnknownSegments() { }

    public static void main(final String[] arguments) throws Exception {
        System.out.println("kafka-streams " + release());
        for (final boolean wiped : new boolean[] {false, true}) {
            play(arguments[0], wiped);
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

    private static void play(final String bootstrap, final boolean wiped) throws Exception {
        final String what = wiped ? "closed in order, started on an empty directory" : "closed in order, started again";
        System.out.println("== " + what);
        final String id = "unknown-segments-" + UUID.randomUUID();
        final Path state = Files.createTempDirectory("unknown-segments");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
             KafkaProducer<String, String> producer = new KafkaProducer<>(
                 Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer())) {
            admin.createTopics(List.of(new NewTopic(id, 1, (short) 1))).all().get();
            KafkaStreams streams = start(bootstrap, id, state);
            for (int hour = 0; hour < 4; hour++) {
                send(producer, id, hour, "price " + hour);
            }
            final String before = ask(producer, id);
            streams.close();
            streams = start(bootstrap, id, wiped ? Files.createTempDirectory("unknown-segments") : state);
            final String after = ask(producer, id);
            streams.close();
            System.out.printf("%s %s: prices of hours 0 to 3 before the close %s, after it %s%n",
                before.equals(after) ? "OK" : "LOST", what, before, after);
        }
    }

    private static void send(
        final KafkaProducer<String, String> producer, final String topic, final int hour, final String value)
        throws Exception {
        producer.send(new ProducerRecord<>(topic, 0, BEGIN_MS + hour * HOUR_MS, "apple", value)).get();
    }

    /** What the store says of each hour, as a join with a table would ask it. */
    private static String ask(final KafkaProducer<String, String> producer, final String topic) throws Exception {
        ANSWERS.clear();
        send(producer, topic, 3, "?");
        final String answer = ANSWERS.poll(2, TimeUnit.MINUTES);
        if (answer == null) {
            throw new IllegalStateException("no answer after two minutes");
        }
        return answer;
    }

    /** Puts what it gets; asked, it says what there is of each hour. */
    private static final class Prices implements Processor<String, String, Void, Void> {
        private VersionedKeyValueStore<String, String> store;

        @Override
        public void init(final ProcessorContext<Void, Void> context) {
            store = context.getStateStore(STORE);
        }

        @Override
        public void process(final Record<String, String> record) {
            if (!record.value().equals("?")) {
                store.put(record.key(), record.value(), record.timestamp());
                return;
            }
            final StringBuilder found = new StringBuilder();
            for (int hour = 0; hour < 4; hour++) {
                final VersionedRecord<String> version = store.get(record.key(), BEGIN_MS + hour * HOUR_MS);
                found.append(hour == 0 ? "[" : ", ").append(version == null ? "none" : version.value());
            }
            ANSWERS.add(found.append("]").toString());
        }
    }

    private static KafkaStreams start(final String bootstrap, final String id, final Path state) throws Exception {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", 6_000);
        final Topology topology = new Topology();
        topology.addSource("input", Serdes.String().deserializer(), Serdes.String().deserializer(), id);
        topology.addProcessor("prices", Prices::new, "input");
        topology.addStateStore(Stores.versionedKeyValueStoreBuilder(
            Stores.persistentVersionedKeyValueStore(STORE, Duration.ofHours(24)),
            Serdes.String(), Serdes.String()), "prices");
        final KafkaStreams streams = new KafkaStreams(topology, settings);
        streams.start();
        final Instant end = Instant.now().plusSeconds(120);
        while (streams.state() != KafkaStreams.State.RUNNING) {
            if (Instant.now().isAfter(end)) {
                throw new IllegalStateException("not RUNNING after two minutes");
            }
            TimeUnit.MILLISECONDS.sleep(50);
        }
        return streams;
    }
}
