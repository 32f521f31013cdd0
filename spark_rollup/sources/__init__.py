"""Where events come from: a directory, an object store (s3a), a Kafka topic. Each gives batches of what is new."""
