import java.io.File;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.CompactionStyle;
import org.rocksdb.CompressionType;
import org.rocksdb.DBOptions;
import org.rocksdb.FlushOptions;
import org.rocksdb.InfoLogLevel;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteOptions;

/**
 * Writes state stores with the settings of Kafka Streams, and tells what RocksDB itself finds in one.
 *
 * <p>Compiled once per rocksdbjni release from 5.7.3 to 10.1.3; what only some of them have is called by name.
 *
 * <pre>
 * write ROOT OFFSETS         one store per shape below ROOT; OFFSETS (true or false): keep an `offsets` family
 * dump DIR                   open read-only, print what is there, tab-separated
 * spin DIR OFFSETS SECONDS   flush and compact as fast as possible; reopen now and then
 * </pre>
 */
public final class StoreWriter {
    private static final String DEFAULT = "default";
    private static final String TIMESTAMPED = "keyValueWithTimestamp";
    private static final String OFFSETS = "offsets";
    private static final long OPEN = 1;
    private static final long CLOSED = 0;
    private static final int SPIN_KEYS = 20_000;
    private static final int POSITION_BYTES = 200;

    private StoreWriter() {}

    public static void main(final String[] args) throws Exception {
        RocksDB.loadLibrary();
        switch (args[0]) {
            case "write":
                write(args[1], Boolean.parseBoolean(args[2]));
                break;
            case "dump":
                dump(args[1]);
                break;
            case "spin":
                spin(args[1], Boolean.parseBoolean(args[2]), Long.parseLong(args[3]));
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
    }

    // ------------------------------------------------------------------------------------------------ shapes

    private static void write(final String root, final boolean offsets) throws RocksDBException {
        flushed(root + "/flushed", offsets);
        compacting(root + "/compacting", offsets);
        compacted(root + "/compacted", offsets);
        reopened(root + "/reopened", offsets);
        upgraded(root + "/upgraded", offsets);
        emptied(root + "/emptied", offsets);
        killed(root + "/killed", offsets); // the last one: it ends the process
    }

    /** Many small sorted runs, none compacted; keys are overwritten and deleted across them. */
    private static void flushed(final String dir, final boolean offsets) throws RocksDBException {
        try (Store store = new Store(dir, offsets, false, false)) {
            for (int round = 0; round < 5; round++) {
                store.put(TIMESTAMPED, 1000, 400, 40);
                store.delete(TIMESTAMPED, 1000, 100);
                store.commit(100L * round, 3);
                store.flush();
            }
        }
    }

    /** Automatic flushes and compactions of several MB. */
    private static void compacting(final String dir, final boolean offsets) throws RocksDBException {
        try (Store store = new Store(dir, offsets, false, true)) {
            for (int round = 0; round < 40; round++) {
                store.put(TIMESTAMPED, 20_000, 600, 100);
                store.delete(TIMESTAMPED, 20_000, 60);
                store.commit(700L * round, 2);
            }
        }
    }

    /** Everything in the last level: sequence numbers are forgotten; one flush comes after it. */
    private static void compacted(final String dir, final boolean offsets) throws RocksDBException {
        try (Store store = new Store(dir, offsets, false, true)) {
            for (int round = 0; round < 6; round++) {
                store.put(TIMESTAMPED, 3000, 500, 60);
                store.delete(TIMESTAMPED, 3000, 50);
                store.commit(round, 40);
                store.flush();
            }
            store.dropOffset(7);
            store.flush();
            store.compact();
            store.put(TIMESTAMPED, 3000, 20, 60);
            store.commit(99, 1);
        }
    }

    /** Four sessions; the closes flush. */
    private static void reopened(final String dir, final boolean offsets) throws RocksDBException {
        for (int session = 0; session < 4; session++) {
            try (Store store = new Store(dir, offsets, false, true)) {
                store.put(TIMESTAMPED, 2000, 700, 30);
                store.delete(TIMESTAMPED, 2000, 200);
                store.commit(1000L * session, 1);
            }
        }
    }

    /** Written by a release without timestamps, then moved key by key into the second family. */
    private static void upgraded(final String dir, final boolean offsets) throws RocksDBException {
        try (Store store = new Store(dir, false, true, true)) {
            store.put(DEFAULT, 1500, 900, 50);
            store.flush();
        }
        try (Store store = new Store(dir, offsets, false, true)) {
            store.put(TIMESTAMPED, 1500, 300, 58);
            store.delete(DEFAULT, 1500, 300);
            store.commit(12, 1);
        }
    }

    /** Everything deleted and compacted away. */
    private static void emptied(final String dir, final boolean offsets) throws RocksDBException {
        try (Store store = new Store(dir, offsets, false, true)) {
            store.put(TIMESTAMPED, 500, 500, 20);
            store.flush();
            for (int key = 0; key < 500; key++) {
                store.db.delete(store.family(TIMESTAMPED), store.noWal, key(key));
            }
            store.flush();
            store.compact();
        }
    }

    /** Ends without a close; what was not flushed is lost. */
    private static void killed(final String dir, final boolean offsets) throws RocksDBException {
        final Store store = new Store(dir, offsets, false, true);
        store.put(TIMESTAMPED, 800, 600, 40);
        store.commit(600, 2);
        store.flush();
        store.put(TIMESTAMPED, 800, 100, 40);
        store.delete(TIMESTAMPED, 800, 30);
        store.commit(730, 2);
        System.out.println("written");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void spin(final String dir, final boolean offsets, final long seconds) throws RocksDBException {
        final long end = System.nanoTime() + seconds * 1_000_000_000L;
        long rounds = 0;
        long sessions = 0;
        while (System.nanoTime() < end) {
            try (Store store = new Store(dir, offsets, false, true)) {
                sessions++;
                for (int round = 1; round <= 400 && System.nanoTime() < end; round++) {
                    store.put(TIMESTAMPED, SPIN_KEYS, 200, 100);
                    store.delete(TIMESTAMPED, SPIN_KEYS, 20);
                    store.commit(rounds, 2);
                    store.flush();
                    if (++rounds == 1) {
                        System.out.println("ready");
                    }
                    if (round % 50 == 0) {
                        store.compact();
                    }
                }
            }
        }
        System.out.println("flushes\t" + rounds + "\nsessions\t" + sessions);
    }

    // ------------------------------------------------------------------------------------------------- store

    /** A store as `RocksDBStore.openDB` opens it, with small buffers. */
    private static final class Store implements AutoCloseable {
        private final RocksDB db;
        private final WriteOptions noWal = new WriteOptions().setDisableWAL(true);
        private final List<String> names = new ArrayList<>();
        private final List<ColumnFamilyHandle> handles = new ArrayList<>();
        private final Random random;

        Store(final String dir, final boolean offsets, final boolean plain, final boolean compactions)
            throws RocksDBException {
            new File(dir).mkdirs();
            random = new Random(new File(dir).getName().hashCode());
            names.add(DEFAULT);
            if (!plain) {
                names.add(TIMESTAMPED);
            }
            if (offsets) {
                names.add(OFFSETS);
            }
            final List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
            for (final String name : names) {
                descriptors.add(new ColumnFamilyDescriptor(bytes(name), settings(name, compactions)));
            }
            final DBOptions options = new DBOptions()
                .setCreateIfMissing(true)
                .setCreateMissingColumnFamilies(true)
                .setInfoLogLevel(InfoLogLevel.ERROR_LEVEL);
            options.setIncreaseParallelism(2);
            if (offsets) {
                call(options, "setAtomicFlush", new Class<?>[] {boolean.class}, true);
            }
            db = RocksDB.open(options, dir, descriptors, handles);
            if (offsets) {
                putLong("status", OPEN);
            }
        }

        private static ColumnFamilyOptions settings(final String name, final boolean compactions) {
            final BlockBasedTableConfig table = new BlockBasedTableConfig();
            table.setBlockSize(4096);
            table.setFilter(new BloomFilter());
            table.setCacheIndexAndFilterBlocks(true);
            final ColumnFamilyOptions options = new ColumnFamilyOptions();
            options.setDisableAutoCompactions(!compactions);
            options.setCompressionType(CompressionType.NO_COMPRESSION);
            if (name.equals(OFFSETS)) {
                options.setWriteBufferSize(1 << 20);
                return options;
            }
            options.setTableFormatConfig(table);
            options.setWriteBufferSize(64 << 10);
            options.setMaxWriteBufferNumber(3);
            options.setCompactionStyle(CompactionStyle.UNIVERSAL);
            return options;
        }

        ColumnFamilyHandle family(final String name) {
            return handles.get(names.indexOf(name));
        }

        void put(final String family, final int keys, final int count, final int size) throws RocksDBException {
            final byte[] value = new byte[size];
            for (int i = 0; i < count; i++) {
                random.nextBytes(value);
                db.put(family(family), noWal, key(random.nextInt(keys)), value);
            }
        }

        void delete(final String family, final int keys, final int count) throws RocksDBException {
            for (int i = 0; i < count; i++) {
                db.delete(family(family), noWal, key(random.nextInt(keys)));
            }
        }

        void commit(final long offset, final int partitions) throws RocksDBException {
            if (!names.contains(OFFSETS)) {
                return;
            }
            for (int partition = 0; partition < partitions; partition++) {
                putLong("app-store-changelog-" + partition, offset + partition);
            }
            db.put(family(OFFSETS), noWal, bytes("position"), position(offset));
        }

        void dropOffset(final int partition) throws RocksDBException {
            if (names.contains(OFFSETS)) {
                db.delete(family(OFFSETS), noWal, bytes("app-store-changelog-" + partition));
            }
        }

        private void putLong(final String key, final long value) throws RocksDBException {
            db.put(family(OFFSETS), noWal, bytes(key), ByteBuffer.allocate(Long.BYTES).putLong(value).array());
        }

        /** Version 0, one topic with two partitions, the rest of the buffer unused: as `PositionSerde` writes it. */
        private static byte[] position(final long offset) {
            final byte[] topic = bytes("input");
            return ByteBuffer.allocate(POSITION_BYTES)
                .put((byte) 0).putInt(1).putInt(topic.length).put(topic)
                .putInt(2).putInt(0).putLong(offset).putInt(1).putLong(offset + 1).array();
        }

        void flush() throws RocksDBException {
            final FlushOptions wait = new FlushOptions().setWaitForFlush(true);
            final Class<?>[] together = {FlushOptions.class, List.class};
            if (names.contains(OFFSETS) && call(db, "flush", together, wait, handles) != NOT_THERE) {
                return;
            }
            for (final ColumnFamilyHandle handle : handles) {
                db.flush(wait, handle);
            }
        }

        void compact() throws RocksDBException {
            for (final ColumnFamilyHandle handle : handles) {
                db.compactRange(handle);
            }
        }

        @Override
        public void close() {
            try {
                if (names.contains(OFFSETS)) {
                    putLong("status", CLOSED);
                    flush();
                }
            } catch (final RocksDBException error) {
                throw new IllegalStateException(error);
            }
            for (final ColumnFamilyHandle handle : handles) {
                handle.close();
            }
            db.close();
        }
    }

    // -------------------------------------------------------------------------------------------------- dump

    private static void dump(final String dir) throws Exception {
        final List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
        final List<String> names = new ArrayList<>();
        for (final byte[] name : RocksDB.listColumnFamilies(new Options(), dir)) {
            names.add(new String(name, StandardCharsets.UTF_8));
            descriptors.add(new ColumnFamilyDescriptor(name, new ColumnFamilyOptions()));
        }
        final List<ColumnFamilyHandle> handles = new ArrayList<>();
        try (RocksDB db = RocksDB.openReadOnly(new DBOptions(), dir, descriptors, handles)) {
            for (int i = 0; i < names.size(); i++) {
                dumpFamily(db, names.get(i), handles.get(i));
                handles.get(i).close();
            }
            final Object files = call(db, "getLiveFilesMetaData", new Class<?>[0]);
            for (final Object file : files instanceof List ? (List<?>) files : Arrays.asList()) {
                line("file", text(file, "fileName"), text(file, "level"), text(file, "size"),
                    text(file, "numEntries"), text(file, "numDeletions"),
                    text(file, "smallestSeqno"), text(file, "largestSeqno"));
            }
        }
    }

    private static void dumpFamily(final RocksDB db, final String name, final ColumnFamilyHandle handle)
        throws Exception {
        long count = 0;
        try (RocksIterator iterator = db.newIterator(handle)) {
            for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
                count++;
                if (name.equals(OFFSETS)) {
                    line("entry", hex(iterator.key()), hex(iterator.value()));
                }
            }
        }
        line("family", name, count);
        // every release has this one: "# entries=2000; raw key size=36000; ... raw value size=80000; ..."
        line("total", name, db.getProperty(handle, "rocksdb.aggregated-table-properties"));
        final Object tables = call(db, "getPropertiesOfAllTables", new Class<?>[] {ColumnFamilyHandle.class}, handle);
        if (!(tables instanceof Map)) {
            return;
        }
        for (final Map.Entry<?, ?> table : ((Map<?, ?>) tables).entrySet()) {
            final Object found = table.getValue();
            line("table", new File(table.getKey().toString()).getName(), text(found, "getNumEntries"),
                text(found, "getNumDeletions"), text(found, "getRawKeySize"), text(found, "getRawValueSize"),
                text(found, "getNumDataBlocks"), text(found, "getColumnFamilyId"));
        }
    }

    // ------------------------------------------------------------------------------------------- small things

    private static final Object NOT_THERE = new Object();

    /** Calls a method that not every release has; NOT_THERE if this one has not. */
    private static Object call(
        final Object target, final String name, final Class<?>[] types, final Object... arguments
    ) {
        try {
            final Method method = target.getClass().getMethod(name, types);
            return method.invoke(target, arguments);
        } catch (final NoSuchMethodException error) {
            return NOT_THERE;
        } catch (final IllegalAccessException | InvocationTargetException error) {
            throw new IllegalStateException(name, error);
        }
    }

    private static String text(final Object target, final String getter) {
        final Object value = call(target, getter, new Class<?>[0]);
        return value == NOT_THERE ? "-" : String.valueOf(value);
    }

    private static void line(final Object... cells) {
        final StringBuilder line = new StringBuilder();
        for (final Object cell : cells) {
            line.append(line.length() == 0 ? "" : "\t").append(cell);
        }
        System.out.println(line);
    }

    private static byte[] key(final int number) {
        return bytes(String.format("key-%08d", number));
    }

    private static byte[] bytes(final String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String hex(final byte[] data) {
        final StringBuilder digits = new StringBuilder();
        for (final byte one : data) {
            digits.append(String.format("%02x", one));
        }
        return digits.toString();
    }
}
