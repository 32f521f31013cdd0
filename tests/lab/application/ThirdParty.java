import java.io.File;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A persistent store that is no RocksDB, as third parties make them: a map, written whole to one file on each flush.
 *
 * <p>A proxy, because the interface of stores gained and lost methods between releases.
 */
final class ThirdParty implements KeyValueBytesStoreSupplier {
    private final String name;

    ThirdParty(final String name) {
        this.name = name;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String metricsScope() {
        return "third-party";
    }

    @Override
    @SuppressWarnings("unchecked")
    public KeyValueStore<Bytes, byte[]> get() {
        return (KeyValueStore<Bytes, byte[]>) Proxy.newProxyInstance(
            ThirdParty.class.getClassLoader(), new Class<?>[] {KeyValueStore.class}, new Kept(name));
    }

    private static final class Kept implements InvocationHandler {
        private final String name;
        private final TreeMap<Bytes, byte[]> entries = new TreeMap<>();
        private Path file;
        private boolean isOpen;

        Kept(final String name) {
            this.name = name;
        }

        @Override
        @SuppressWarnings("unchecked")
        public synchronized Object invoke(final Object self, final Method method, final Object[] given)
            throws Throwable {
            switch (method.getName()) {
                case "name":
                    return name;
                case "init":
                    open(given[0], (StateStore) given[1]);
                    return null;
                case "persistent":
                    return true;
                case "isOpen":
                    return isOpen;
                case "flush":
                    write();
                    return null;
                case "close":
                    if (isOpen) {
                        write();
                    }
                    isOpen = false;
                    return null;
                case "put":
                    put((Bytes) given[0], (byte[]) given[1]);
                    return null;
                case "putIfAbsent":
                    return entries.putIfAbsent((Bytes) given[0], (byte[]) given[1]);
                case "putAll":
                    for (final KeyValue<Bytes, byte[]> entry : (Iterable<KeyValue<Bytes, byte[]>>) given[0]) {
                        put(entry.key, entry.value);
                    }
                    return null;
                case "get":
                    return entries.get((Bytes) given[0]);
                case "delete":
                    return entries.remove((Bytes) given[0]);
                case "approximateNumEntries":
                    return (long) entries.size();
                case "all":
                    return iterator(new TreeMap<>(entries));
                case "range":
                    return iterator(new TreeMap<>(entries.subMap((Bytes) given[0], true, (Bytes) given[1], true)));
                case "getPosition": // from 3.3 on
                    return method.getReturnType().getMethod("emptyPosition").invoke(null);
                case "hashCode":
                    return System.identityHashCode(self);
                case "equals":
                    return self == given[0];
                case "toString":
                    return name;
                default:
                    return InvocationHandler.invokeDefault(self, method, given);
            }
        }

        private void put(final Bytes key, final byte[] value) {
            if (value == null) {
                entries.remove(key);
            } else {
                entries.put(key, value);
            }
        }

        /** {@code context} is a {@code StateStoreContext} or, in old releases, a {@code ProcessorContext}. */
        private void open(final Object context, final StateStore root) throws Exception {
            final Method stateDir = Arrays.stream(context.getClass().getMethods())
                .filter(method -> method.getName().equals("stateDir")).findFirst().orElseThrow();
            stateDir.setAccessible(true);
            final Path directory = ((File) stateDir.invoke(context)).toPath().resolve(name);
            Files.createDirectories(directory);
            file = directory.resolve("data");
            entries.clear(); // a wipe closes the store, deletes its directory and opens the same object again
            if (Files.exists(file)) {
                try (ObjectInputStream in = new ObjectInputStream(Files.newInputStream(file))) {
                    for (int left = in.readInt(); left > 0; left--) {
                        entries.put(Bytes.wrap((byte[]) in.readObject()), (byte[]) in.readObject());
                    }
                }
            }
            isOpen = true;
            final StateRestoreCallback restore = (key, value) -> put(Bytes.wrap(key), value);
            final Method register = Arrays.stream(context.getClass().getMethods())
                .filter(method -> method.getName().equals("register") && method.getParameterCount() == 2)
                .findFirst().orElseThrow();
            register.setAccessible(true);
            register.invoke(context, root, restore);
        }

        private void write() throws Exception {
            final Path fresh = file.resolveSibling("data.tmp");
            try (ObjectOutputStream out = new ObjectOutputStream(Files.newOutputStream(fresh))) {
                out.writeInt(entries.size());
                for (final Map.Entry<Bytes, byte[]> entry : entries.entrySet()) {
                    out.writeObject(entry.getKey().get());
                    out.writeObject(entry.getValue());
                }
            }
            Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        }

        private static KeyValueIterator<Bytes, byte[]> iterator(final TreeMap<Bytes, byte[]> of) {
            final Iterator<Map.Entry<Bytes, byte[]>> inner = of.entrySet().iterator();
            return new KeyValueIterator<Bytes, byte[]>() {
                @Override
                public void close() { }

                @Override
                public Bytes peekNextKey() {
                    throw new UnsupportedOperationException();
                }

                @Override
                public boolean hasNext() {
                    return inner.hasNext();
                }

                @Override
                public KeyValue<Bytes, byte[]> next() {
                    final Map.Entry<Bytes, byte[]> entry = inner.next();
                    return KeyValue.pair(entry.getKey(), entry.getValue());
                }
            };
        }
    }
}
