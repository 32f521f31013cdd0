"""What Kafka Streams and RocksDB write where: names, paths, file formats, release facts. Pure."""
