"""RocksDB without RocksDB: a read-only, bounded reader of what a state store has on disk.

`manifest` says which files are live and what was flushed, `store` adds the properties of the SST files and,
for the `offsets` family alone (Kafka Streams 4.3+), its entries. Standard library only; reads go through
`agent.inventory.disk.Disk`. Keys and values of every other column family are never read.
"""
