import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A Kafka broker in KRaft mode and, in the same process, the hands that make topics and records for it.
 *
 * <p>Arguments: the properties file, the bootstrap address. Commands come on standard input, one line each.
 */
public final class Broker {
    /** {@code ConfigResource.Type.GROUP}, which the older brokers do not have. */
    private static final byte GROUP = 32;

    private Broker() { }

    public static void main(final String[] arguments) throws Exception {
        final Thread broker = new Thread(() -> kafka.Kafka.main(new String[] {arguments[0]}), "broker");
        broker.setDaemon(true);
        broker.start();
        final Map<String, Object> client = new HashMap<>();
        client.put("bootstrap.servers", arguments[1]);
        client.put("default.api.timeout.ms", "600000"); // longer than BROKER_S of processes.py
        final BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        try (Admin admin = Admin.create(client)) {
            admin.describeCluster().clusterId().get();
            System.out.println("tool: ready");
            final Map<String, Object> producing = new HashMap<>(client);
            producing.put("linger.ms", "5");
            final KafkaProducer<String, String> producer =
                new KafkaProducer<>(producing, new StringSerializer(), new StringSerializer());
            for (String line = commands.readLine(); line != null; line = commands.readLine()) {
                try {
                    final String[] words = line.split(" ");
                    final boolean reads = words[0].equals("read");
                    System.out.println("tool: " + (reads ? read(client, words) : obey(admin, producer, words)));
                } catch (final Exception problem) {
                    System.out.println("tool: problem " + problem);
                }
                System.out.flush();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static String obey(
        final Admin admin, final KafkaProducer<String, String> producer, final String[] words) throws Exception {
        switch (words[0]) {
            case "topic": // topic NAME PARTITIONS [key=value ...]
                final Map<String, String> settings = new HashMap<>();
                for (final String word : Arrays.asList(words).subList(3, words.length)) {
                    settings.put(word.split("=")[0], word.split("=")[1]);
                }
                final NewTopic topic = new NewTopic(words[1], Integer.parseInt(words[2]), (short) 1);
                admin.createTopics(List.of(topic.configs(settings))).all().get();
                return "made";
            case "produce": // produce TOPIC PARTITION PREFIX FROM TO FIRST_MS STEP_MS [delete|keyed]
                final int partition = Integer.parseInt(words[2]);
                final long first = Long.parseLong(words[6]);
                final long step = Long.parseLong(words[7]);
                final String kind = words.length > 8 ? words[8] : "";
                final List<Future<RecordMetadata>> sent = new ArrayList<>();
                long at = first;
                for (int i = Integer.parseInt(words[4]); i < Integer.parseInt(words[5]); i++, at += step) {
                    final String key = words[3] + i;
                    final String value = kind.equals("delete") ? null : kind.equals("keyed") ? key : "v";
                    sent.add(producer.send(new ProducerRecord<>(words[1], partition, at, key, value)));
                }
                producer.flush();
                for (final Future<RecordMetadata> one : sent) {
                    one.get(); // what was not taken must not count as sent
                }
                return "produced";
            case "committed": // committed GROUP PREFIX: sum of the group's committed offsets of topics named so, and each
                long sum = 0;
                final StringBuilder each = new StringBuilder();
                for (final Map.Entry<TopicPartition, OffsetAndMetadata> offset :
                    admin.listConsumerGroupOffsets(words[1]).partitionsToOffsetAndMetadata().get().entrySet()) {
                    if (offset.getValue() != null && offset.getKey().topic().startsWith(words[2])) {
                        sum += offset.getValue().offset();
                        each.append(' ').append(offset.getKey()).append('=').append(offset.getValue().offset());
                    }
                }
                return "committed " + sum + each;
            case "forget": // forget GROUP: remove the offsets of a group that nobody is in
                admin.deleteConsumerGroups(List.of(words[1])).all().get();
                return "forgotten";
            case "drop": // drop PREFIX: remove topics of a finished scenario
                return drop(admin, words[1], "\n");
            case "reset": // reset APPLICATION INPUT: remove an application's own topics, as its reset does
                return drop(admin, words[1] + "-", words[2]);
            case "cut": // cut TOPIC: delete the first half of each partition's records
                return cut(admin, words[1]);
            case "recreate": // recreate TOPIC: delete it, and make it again as it was
                return recreate(admin, words[1]);
            case "group": // group NAME key=value: set what a group of the streams protocol has on the broker
                final ConfigResource group = new ConfigResource(ConfigResource.Type.forId(GROUP), words[1]);
                final ConfigEntry entry = new ConfigEntry(words[2].split("=")[0], words[2].split("=")[1]);
                admin.incrementalAlterConfigs(
                    Map.of(group, List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET)))).all().get();
                return "set";
            default:
                return "problem unknown " + words[0];
        }
    }

    /**
     * Obeys {@code read TOPIC FILE latest|count}: what is committed, as lines {@code key TAB value}.
     *
     * <p>{@code latest} gives the latest count of each key, {@code count} how many records a key has.
     */
    private static String read(final Map<String, Object> client, final String[] words) throws Exception {
        final Map<String, Object> reading = new HashMap<>(client);
        reading.put("isolation.level", "read_committed");
        final Map<String, Long> found = new TreeMap<>();
        try (KafkaConsumer<String, byte[]> consumer =
            new KafkaConsumer<>(reading, new StringDeserializer(), new ByteArrayDeserializer())) {
            final List<TopicPartition> parts = new ArrayList<>();
            consumer.partitionsFor(words[1]).forEach(part -> parts.add(new TopicPartition(words[1], part.partition())));
            consumer.assign(parts);
            final Map<TopicPartition, Long> ends = consumer.endOffsets(parts);
            consumer.seekToBeginning(parts);
            while (!parts.stream().allMatch(part -> consumer.position(part) >= ends.get(part))) {
                for (final ConsumerRecord<String, byte[]> one : consumer.poll(Duration.ofMillis(100))) {
                    if (words[3].equals("count")) {
                        found.merge(one.key(), 1L, Long::sum);
                    } else if (one.value() == null) {
                        found.remove(one.key());
                    } else {
                        found.put(one.key(), ByteBuffer.wrap(one.value()).getLong());
                    }
                }
            }
        }
        try (PrintWriter file = new PrintWriter(words[2], StandardCharsets.UTF_8)) {
            found.forEach((key, value) -> file.println(key + "\t" + value));
        }
        return "read " + found.size();
    }

    private static String recreate(final Admin admin, final String topic) throws Exception {
        final ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        final Map<String, String> settings = new HashMap<>();
        for (final ConfigEntry entry : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            if (entry.source() == ConfigEntry.ConfigSource.DYNAMIC_TOPIC_CONFIG) {
                settings.put(entry.name(), entry.value());
            }
        }
        final int partitions = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
        final NewTopic again = new NewTopic(topic, partitions, (short) 1).configs(settings);
        admin.deleteTopics(List.of(topic)).all().get();
        for (int i = 0; i < 100; i++) {
            try {
                admin.createTopics(List.of(again)).all().get();
                return "recreated";
            } catch (final java.util.concurrent.ExecutionException notYet) {
                if (!(notYet.getCause() instanceof TopicExistsException)) {
                    throw notYet;
                }
                Thread.sleep(50);
            }
        }
        return "problem it is still there";
    }

    private static String cut(final Admin admin, final String topic) throws Exception {
        final Map<TopicPartition, OffsetSpec> first = new HashMap<>();
        final Map<TopicPartition, OffsetSpec> last = new HashMap<>();
        for (final TopicPartitionInfo info :
            admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions()) {
            first.put(new TopicPartition(topic, info.partition()), OffsetSpec.earliest());
            last.put(new TopicPartition(topic, info.partition()), OffsetSpec.latest());
        }
        final Map<TopicPartition, ListOffsetsResultInfo> ends = admin.listOffsets(last).all().get();
        final Map<TopicPartition, RecordsToDelete> before = new HashMap<>();
        for (final Map.Entry<TopicPartition, ListOffsetsResultInfo> begin :
            admin.listOffsets(first).all().get().entrySet()) {
            final long end = ends.get(begin.getKey()).offset();
            before.put(begin.getKey(), RecordsToDelete.beforeOffset((begin.getValue().offset() + end) / 2));
        }
        admin.deleteRecords(before).all().get();
        return "cut";
    }

    private static String drop(final Admin admin, final String prefix, final String but) throws Exception {
        final List<String> names = new ArrayList<>();
        for (final String name : admin.listTopics().names().get()) {
            if (name.startsWith(prefix) && !name.startsWith(but)) {
                names.add(name);
            }
        }
        admin.deleteTopics(names).all().get();
        return "dropped " + names.size();
    }
}
