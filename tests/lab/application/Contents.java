import java.io.PrintWriter;
import java.lang.reflect.InvocationTargetException;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.state.ReadOnlySessionStore;
import org.apache.kafka.streams.state.ReadOnlyWindowStore;

/** Every entry that a copy of a store holds here, as lines {@code key TAB value} of a file. */
final class Contents {
    private static final int EVERY = -1;

    private Contents() { }

    /**
     * Obeys {@code dump NAME KIND FILE PARTITION [PREFIX:COUNT ...]}; answers how many entries there are and whose.
     *
     * <p>PARTITION -1 are all active copies; else it is the copy of that partition, {@code active} or {@code standby},
     * from 2.5 on. KIND is {@code key-value}, {@code window}, {@code join}, {@code session} or {@code versioned}. Keys of windows
     * and sessions are {@code key@start}. A versioned store cannot be walked: it is asked for the
     * time of the latest version of PREFIX0 to PREFIX(COUNT-1), from 3.7 on.
     */
    static String write(final KafkaStreams streams, final String[] words) throws Exception {
        final int partition = Integer.parseInt(words[4]);
        try {
            return "dumped " + write(streams, words, partition, false) + " active";
        } catch (final InvalidStateStoreException notActive) {
            if (partition == EVERY) {
                throw notActive;
            }
            return "dumped " + write(streams, words, partition, true) + " standby";
        }
    }

    private static long write(
        final KafkaStreams streams, final String[] words, final int partition, final boolean stale) throws Exception {
        final String name = words[1];
        long entries = 0;
        try (PrintWriter file = new PrintWriter(words[3], "UTF-8")) {
            switch (words[2]) {
                case "window":
                case "join":
                    final QueryableStoreType<ReadOnlyWindowStore<String, Object>> window =
                        QueryableStoreTypes.windowStore();
                    entries = walk(copy(streams, name, window, partition, stale).all(), file);
                    break;
                case "session":
                    final QueryableStoreType<ReadOnlySessionStore<String, Object>> session =
                        QueryableStoreTypes.sessionStore();
                    entries = walk(copy(streams, name, session, partition, stale).fetch(null, null), file);
                    break;
                case "versioned":
                    for (int i = 5; i < words.length; i++) {
                        final String[] keys = words[i].split(":");
                        entries += versions(streams, name, keys, partition, stale, file);
                    }
                    break;
                default:
                    final QueryableStoreType<ReadOnlyKeyValueStore<String, Object>> plain =
                        QueryableStoreTypes.keyValueStore();
                    entries = walk(copy(streams, name, plain, partition, stale).all(), file);
            }
        }
        return entries;
    }

    @SuppressWarnings("unchecked")
    private static <T> T copy(
        final KafkaStreams streams, final String name, final QueryableStoreType<T> type, final int partition,
        final boolean stale) throws Exception {
        if (partition == EVERY) {
            return App.store(streams, name, type);
        }
        final Class<?> parameters = Class.forName("org.apache.kafka.streams.StoreQueryParameters");
        Object question = parameters
            .getMethod("fromNameAndType", String.class, QueryableStoreType.class).invoke(null, name, type);
        question = parameters.getMethod("withPartition", Integer.class).invoke(question, partition);
        if (stale) {
            question = parameters.getMethod("enableStaleStores").invoke(question);
        }
        try {
            return (T) KafkaStreams.class.getMethod("store", parameters).invoke(streams, question);
        } catch (final InvocationTargetException refused) {
            throw (Exception) refused.getCause();
        }
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

    /** Asks an active or any copy for each key; a copy that is not here, or not active, is refused like other stores. */
    private static long versions(
        final KafkaStreams streams, final String store, final String[] keys, final int partition, final boolean stale,
        final PrintWriter file) throws Exception {
        final String package_ = "org.apache.kafka.streams.query.";
        final Class<?> request = Class.forName(package_ + "StateQueryRequest");
        final Class<?> answer = Class.forName(package_ + "QueryResult");
        final Object in = request.getMethod("inStore", String.class).invoke(null, store);
        long number = 0;
        for (int i = 0; i < Integer.parseInt(keys[1]); i++) {
            final Object asked = Class.forName(package_ + "VersionedKeyQuery")
                .getMethod("withKey", Object.class).invoke(null, keys[0] + i);
            Object question = Class.forName(request.getName() + "$InStore")
                .getMethod("withQuery", Class.forName(package_ + "Query")).invoke(in, asked);
            question = request.getMethod("withPartitions", Set.class).invoke(question, Collections.singleton(partition));
            if (!stale) {
                question = request.getMethod("requireActive").invoke(question);
            }
            final Object answers = KafkaStreams.class.getMethod("query", request).invoke(streams, question);
            final Object one = ((Map<?, ?>) Class.forName(package_ + "StateQueryResult")
                .getMethod("getPartitionResults").invoke(answers)).get(partition);
            if (one == null || !(Boolean) answer.getMethod("isSuccess").invoke(one)) {
                throw new InvalidStateStoreException("no such copy of " + store + " here: " + one);
            }
            final Object version = answer.getMethod("getResult").invoke(one);
            if (version != null) {
                file.println(keys[0] + i + "\t" + version.getClass().getMethod("timestamp").invoke(version));
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
