import java.io.PrintWriter;
import java.util.Collection;
import java.util.TreeMap;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;

/** Every entry that the active copies of a store hold here, as lines {@code key TAB value} of a file. */
final class Contents {
    private Contents() { }

    /**
     * Obeys {@code dump NAME KIND FILE [PREFIX:COUNT ...]}; answers how many entries there are.
     *
     * <p>KIND is {@code key-value}, {@code window}, {@code join}, {@code session} or {@code versioned}. Keys of windows
     * and sessions are {@code key@start}. A versioned store cannot be walked: it is asked for the
     * time of the latest version of PREFIX0 to PREFIX(COUNT-1), from 3.7 on.
     */
    static String write(final KafkaStreams streams, final String[] words) throws Exception {
        final String name = words[1];
        long entries = 0;
        try (PrintWriter file = new PrintWriter(words[3], "UTF-8")) {
            switch (words[2]) {
                case "window":
                case "join":
                    final QueryableStoreType<ReadOnlyWindowStore<String, Object>> window =
                        QueryableStoreTypes.windowStore();
                    entries = walk(App.store(streams, name, window).all(), file);
                    break;
                case "session":
                    final QueryableStoreType<ReadOnlySessionStore<String, Object>> session =
                        QueryableStoreTypes.sessionStore();
                    entries = walk(App.store(streams, name, session).fetch(null, null), file);
                    break;
                case "versioned":
                    for (int i = 4; i < words.length; i++) {
                        final String[] keys = words[i].split(":");
                        entries += versions(streams, name, keys[0], Integer.parseInt(keys[1]), file);
                    }
                    break;
                default:
                    final QueryableStoreType<ReadOnlyKeyValueStore<String, Object>> plain =
                        QueryableStoreTypes.keyValueStore();
                    entries = walk(App.store(streams, name, plain).all(), file);
            }
        }
        return "dumped " + entries;
    }

    private static long walk(final KeyValueIterator<?, ?> entries, final PrintWriter file) {
        long number = 0;
        try (KeyValueIterator<?, ?> all = entries) {
            while (all.hasNext()) {
                final org.apache.kafka.streams.KeyValue<?, ?> entry = all.next();
                final Object key = entry.key instanceof Windowed
                    ? ((Windowed<?>) entry.key).key() + "@" + ((Windowed<?>) entry.key).window().start()
                    : entry.key;
                file.println(key + "\t" + entry.value);
                number++;
            }
        }
        return number;
    }

    private static long versions(
        final KafkaStreams streams, final String store, final String prefix, final int count, final PrintWriter file)
        throws Exception {
        final String package_ = "org.apache.kafka.streams.query.";
        final Class<?> request = Class.forName(package_ + "StateQueryRequest");
        final Object in = request.getMethod("inStore", String.class).invoke(null, store);
        long number = 0;
        for (int i = 0; i < count; i++) {
            final Object asked = Class.forName(package_ + "VersionedKeyQuery")
                .getMethod("withKey", Object.class).invoke(null, prefix + i);
            final Object question = Class.forName(request.getName() + "$InStore")
                .getMethod("withQuery", Class.forName(package_ + "Query")).invoke(in, asked);
            final Object answers = KafkaStreams.class.getMethod("query", request).invoke(streams, question);
            final Object one = Class.forName(package_ + "StateQueryResult")
                .getMethod("getOnlyPartitionResult").invoke(answers);
            final Object version = one == null
                ? null : Class.forName(package_ + "QueryResult").getMethod("getResult").invoke(one);
            if (version != null) {
                file.println(prefix + i + "\t" + version.getClass().getMethod("timestamp").invoke(version));
                number++;
            }
        }
        return number;
    }

    /** Names the stores of each sub-topology: {@code stores 0:kv,window 1:repartition}. */
    static String stores(final Topology topology) {
        final TreeMap<Integer, String> found = new TreeMap<>();
        for (final TopologyDescription.Subtopology part : topology.describe().subtopologies()) {
            final Collection<String> names = new java.util.TreeSet<>();
            for (final TopologyDescription.Node node : part.nodes()) {
                if (node instanceof TopologyDescription.Processor) {
                    names.addAll(((TopologyDescription.Processor) node).stores());
                }
            }
            found.put(part.id(), String.join(",", names));
        }
        final StringBuilder line = new StringBuilder("stores");
        found.forEach((number, names) -> line.append(' ').append(number).append(':').append(names));
        return line.toString();
    }
}
