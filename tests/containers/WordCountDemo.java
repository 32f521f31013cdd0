package org.apache.kafka.streams.examples.wordcount;

import java.io.FileReader;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Stands in for Kafka's example of this name, which is in Kafka's image and in no package registry: the same topics, the
 * same kind of topology, one argument that names a file of settings, an orderly close at SIGTERM.
 */
public final class WordCountDemo {
    public static void main(final String[] arguments) throws Exception {
        final Properties settings = new Properties();
        settings.put("default.key.serde", Serdes.StringSerde.class);
        settings.put("default.value.serde", Serdes.StringSerde.class);
        settings.put("auto.offset.reset", "earliest");
        settings.put("commit.interval.ms", "1000");
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        final StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("streams-plaintext-input")
            .flatMapValues(line -> Arrays.asList(line.split("\\W+")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts-store"))
            .toStream()
            .to("streams-wordcount-output", Produced.with(Serdes.String(), Serdes.Long()));
        final KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        final CountDownLatch closed = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            streams.close();
            closed.countDown();
        }));
        streams.start();
        closed.await();
    }
}
