import java.io.File;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Closes our own store and opens the same object again, as Kafka Streams does when it wipes a task.
 *
 * <p>Argument: an empty directory. Tells how many entries it holds with its file, and once the file is gone.
 */
public final class Reopened {
    private Reopened() { }

    public static void main(final String[] arguments) throws Exception {
        final Path directory = Path.of(arguments[0]);
        final KeyValueStore<Bytes, byte[]> store = new ThirdParty("third").get();
        open(store, directory);
        store.put(Bytes.wrap("p0-1".getBytes(StandardCharsets.UTF_8)), new byte[] {1});
        store.close();
        open(store, directory);
        System.out.println("kept " + store.approximateNumEntries());
        store.close();
        Files.delete(directory.resolve("third").resolve("data"));
        open(store, directory);
        System.out.println("wiped " + store.approximateNumEntries());
    }

    /** Through whichever {@code init} the release has. */
    private static void open(final KeyValueStore<Bytes, byte[]> store, final Path directory) throws Exception {
        final Method init = Arrays.stream(StateStore.class.getMethods())
            .filter(method -> method.getName().equals("init")).findFirst().orElseThrow();
        final File home = directory.toFile();
        final Object context = Proxy.newProxyInstance(
            Reopened.class.getClassLoader(),
            new Class<?>[] {init.getParameterTypes()[0]},
            (self, method, given) -> method.getName().equals("stateDir") ? home : null);
        init.invoke(store, context, store);
    }
}
