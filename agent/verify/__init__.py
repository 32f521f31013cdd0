"""Compares what RocksDB stores hold with what their changelogs say: `statewarden verify`."""
