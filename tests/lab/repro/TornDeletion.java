import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.Stores;

/**
 * A store is empty, or lacks segments, after its deletion was killed half-way: every release of Kafka Streams for window
 * stores, up to 4.2 for all stores, see docs/found/torn-deletion.md.
 *
 * <pre>java -cp CLASSES:JARS TornDeletion BOOTSTRAP</pre>
 *
 * <p>The application runs in a process of its own, which is killed. Each case ends with a line that begins with {@code LOST}
 * or {@code OK}, or {@code UNDECIDED} if the file system lists the offsets first and no kill can do harm.
 */
public final class TornDeletion {
    private static final long HOUR_MS = 3_600_000;
    private static final long SEGMENT_MS = 3 * HOUR_MS;
    private static final int KEYS = 500;
    private static final int SEGMENTS = 3;
    private static final int TRIES = 10;
    private static final int BULK_FOLDERS = 8;
    private static final int BULK_FILES = 1_000;
    private static final String STORE = "counts";

    private TornDeletion() { }

    public static void main(final String[] arguments) throws Exception {
        if (arguments.length > 1) {
            application(arguments[0], arguments[1], Path.of(arguments[2]), arguments[3], arguments[4]);
            return;
        }
        System.out.println("kafka-streams " + release());
        for (final String guarantee : List.of(StreamsConfig.AT_LEAST_ONCE, StreamsConfig.EXACTLY_ONCE_V2)) {
            for (final String kind : List.of("key-value", "window")) {
                play(new Case(arguments[0], guarantee, kind));
            }
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

    private static void play(final Case life) throws Exception {
        System.out.printf("== %s store, %s: cleanUp() is killed half-way%n", life.kind, life.guarantee);
        life.start("run");
        life.produce();
        final String before = life.ask("count", "keys: ");
        life.ask("close", "closed");
        life.kill();
        final Path copy = life.state.resolveSibling(life.state.getFileName() + "-copy");
        copy(life.state.resolve(life.id), copy);
        for (int number = 0; !life.tear(); number++) {
            if (number == TRIES) {
                System.out.printf("UNDECIDED %s store, %s: the offsets always go first%n", life.kind, life.guarantee);
                return;
            }
            delete(life.state.resolve(life.id));
            copy(copy, life.state.resolve(life.id));
        }
        life.start("run");
        final String after = life.ask("count", "keys: ");
        System.out.printf("%s %s store, %s: before %s, after %s%n",
            before.equals(after) ? "OK" : "LOST", life.kind, life.guarantee, before, after);
        life.kill();
    }

    /** One application id with its topic, state directory and process. */
    private static final class Case {
        private final String bootstrap;
        private final String guarantee;
        private final String kind;
        private final String id = "torn-deletion-" + UUID.randomUUID();
        private final Path state = Files.createTempDirectory("torn-deletion");
        private final Path task = state.resolve(id).resolve("0_0");
        private final Admin admin;
        private final KafkaProducer<String, String> producer;
        private Process process;
        private BufferedReader answers;

        Case(final String bootstrap, final String guarantee, final String kind) throws Exception {
            this.bootstrap = bootstrap;
            this.guarantee = guarantee;
            this.kind = kind;
            admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
            producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", bootstrap), new StringSerializer(), new StringSerializer());
            admin.createTopics(List.of(new NewTopic(id, 1, (short) 1))).all().get();
        }

        void start(final String what) throws IOException {
            process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
                "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"), "-cp", System.getProperty("java.class.path"),
                TornDeletion.class.getName(), bootstrap, id, state.toString(), guarantee + " " + kind, what)
                .redirectError(state.resolve("stderr").toFile()).start();
            answers = new BufferedReader(new InputStreamReader(process.getInputStream()));
            await(what.equals("run") ? "running" : "cleans up");
        }

        /** As many keys into each of three segments, and waits until the application has committed them. */
        void produce() throws Exception {
            final long newest = System.currentTimeMillis() / SEGMENT_MS * SEGMENT_MS - SEGMENT_MS;
            for (final long before : List.of(5 * HOUR_MS, SEGMENT_MS, 0L)) { // all within the retention of six hours
                for (int key = 0; key < KEYS; key++) {
                    producer.send(new ProducerRecord<>(id, 0, newest - before, before + "-" + key, ""));
                }
            }
            producer.flush();
            final TopicPartition input = new TopicPartition(id, 0);
            final Instant end = Instant.now().plusSeconds(120);
            while (true) {
                final var committed = admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().get(input);
                if (committed != null && committed.offset() >= SEGMENTS * KEYS) {
                    return;
                }
                if (Instant.now().isAfter(end)) {
                    throw new IllegalStateException("not all records are committed after two minutes, see " + state);
                }
                TimeUnit.MILLISECONDS.sleep(50);
            }
        }

        /** Names of the folders of databases: one of the key-value store, one of each segment of the window store. */
        Set<String> names(final Path parent) throws IOException {
            try (Stream<Path> folders = Files.list(parent)) {
                return folders.map(x -> x.getFileName().toString()).filter(x -> !x.startsWith("bulk"))
                    .collect(Collectors.toSet());
            } catch (final NoSuchFileException | UncheckedIOException gone) {
                return Set.of();
            }
        }

        /** Each database with the names of its files. */
        Set<String> databases(final Path parent) throws IOException {
            final Set<String> found = new TreeSet<>();
            for (final String name : names(parent)) {
                try (Stream<Path> files = Files.list(parent.resolve(name))) {
                    found.add(name + " " + files.map(x -> x.getFileName().toString()).sorted().toList());
                }
            }
            return found;
        }

        /**
         * Kills a process in its cleanUp(). Many small files beside the databases stand in for large ones: they make the
         * deletion last long enough to be killed at a chosen moment. What is left of them is removed before the next start.
         *
         * @return Whether databases are gone, those that are left are whole, and so are their offsets.
         */
        boolean tear() throws Exception {
            final Path parent = task.resolve(kind.equals("window") ? STORE : "rocksdb");
            for (int folder = 0; folder < BULK_FOLDERS; folder++) {
                final Path bulk = Files.createDirectory(parent.resolve("bulk" + folder));
                for (int file = 0; file < BULK_FILES; file++) {
                    Files.createFile(bulk.resolve(Integer.toString(file)));
                }
            }
            final Set<String> whole = databases(parent);
            final Set<String> names = names(parent);
            final boolean inFile = Files.exists(task.resolve(".checkpoint")); // up to 4.2; then in the databases
            start("clean");
            while (names(parent).size() == names.size() && process.isAlive()) {
                TimeUnit.MILLISECONDS.sleep(1); // until the first database is gone
            }
            process.destroyForcibly().waitFor();
            if (Files.notExists(task)) {
                System.out.println("SIGKILL: the task directory is gone");
                return true;
            }
            final Set<String> left = databases(parent);
            final boolean offsets = Files.exists(task.resolve(".checkpoint"));
            System.out.printf("SIGKILL: %d of %d databases are left%s%n",
                left.size(), whole.size(), offsets ? ", and .checkpoint" : "");
            if (Files.isDirectory(parent)) {
                try (Stream<Path> folders = Files.list(parent)) {
                    for (final Path folder : folders.filter(x -> x.getFileName().toString().startsWith("bulk")).toList()) {
                        delete(folder);
                    }
                }
            }
            final boolean hasOffsets = inFile ? offsets : !left.isEmpty() || whole.size() == 1;
            return left.size() < whole.size() && whole.containsAll(left) && hasOffsets;
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

        void kill() throws InterruptedException {
            process.destroyForcibly().waitFor();
        }
    }

    private static void copy(final Path from, final Path to) throws IOException {
        try (Stream<Path> paths = Files.walk(from)) {
            for (final Path path : paths.toList()) {
                Files.copy(path, to.resolve(from.relativize(path)), StandardCopyOption.COPY_ATTRIBUTES);
            }
        }
    }

    private static void delete(final Path folder) throws IOException {
        try (Stream<Path> paths = Files.walk(folder)) {
            for (final Path path : paths.sorted((one, other) -> other.compareTo(one)).toList()) {
                Files.delete(path);
            }
        }
    }

    private static void application(
        final String bootstrap, final String id, final Path state, final String how, final String what) throws Exception {
        final Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, how.split(" ")[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put("session.timeout.ms", 6_000);
        final boolean windows = how.endsWith("window");
        final StreamsBuilder builder = new StreamsBuilder();
        final KGroupedStream<String, String> keys = builder.<String, String>stream(id).groupByKey();
        if (windows) {
            keys.windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(HOUR_MS)))
                .count(Materialized.as(Stores.persistentTimestampedWindowStore(
                    STORE, Duration.ofMillis(2 * SEGMENT_MS), Duration.ofMillis(HOUR_MS), false)));
        } else {
            keys.count(Materialized.as(Stores.persistentTimestampedKeyValueStore(STORE)));
        }
        final KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        if (what.equals("clean")) {
            System.out.println("cleans up");
            streams.cleanUp();
            Runtime.getRuntime().halt(0);
        }
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
            if (question.equals("count")) {
                System.out.println("keys: " + size(windows
                    ? streams.store(StoreQueryParameters.fromNameAndType(STORE, QueryableStoreTypes.windowStore())).all()
                    : streams.store(StoreQueryParameters.fromNameAndType(STORE, QueryableStoreTypes.keyValueStore())).all()));
            } else {
                streams.close();
                System.out.println("closed");
            }
        }
        Runtime.getRuntime().halt(0); // the other process is gone
    }

    private static int size(final KeyValueIterator<?, ?> entries) {
        int size = 0;
        try (entries) {
            for (; entries.hasNext(); entries.next()) {
                size++;
            }
        }
        return size;
    }
}
