"""Reads the disk: kernel disk, locks, processes, RocksDB files; makes observations. Decides nothing."""
