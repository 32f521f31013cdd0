"""One stand-in for a Kafka Streams instance: real RocksDB, real file locks, told on standard input what to do.

    python application.py STATE_DIR APPLICATION < commands

Imports nothing of ours. The commands are listed in README.md; each is a method of `Application`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

from rocksdict import (  # not in the project's own set
    DBCompactionStyle,
    DBCompressionType,
    DBPath,
    Options,
    Rdict,
    WriteOptions,
)

PROCESS_FILE = "kafka-streams-process-metadata"
PROCESS = '{"processId":"11111111-1111-1111-1111-111111111111"}'
CHANCES = 60_000
"""Directories made to get one inode number again."""
NO_INODE = 7
"""Exit code: no inode number came back, so the story cannot be played on this file system just now."""
WRONG_COMMAND = 2
SECOND_PATH_BYTES = 1 << 30

OFFSETS_FAMILY = "offsets"
TIMESTAMPED_FAMILY = "keyValueWithTimestamp"

StoreKey = tuple[str, str, str | None]


def store_options() -> Options:
    """Set what Kafka Streams sets and the disk shows: universal compaction, no compression, 16 MiB per memtable."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_compaction_style(DBCompactionStyle.universal())
    options.set_compression_type(DBCompressionType.none())
    options.set_write_buffer_size(16 << 20)
    options.set_max_write_buffer_number(3)
    return options


def long(number: str) -> bytes:
    """Write a number as Kafka's LongSerializer does."""
    return int(number).to_bytes(8, "big", signed=True)


class Application:
    """Its directory, its open stores and its locks."""

    def __init__(self, home: Path) -> None:
        """Make the application directory, `STATE_DIR/APPLICATION`."""
        self._home = home
        self._stores: dict[StoreKey, Rdict] = {}
        self._families: dict[StoreKey, Rdict] = {}
        self._locks: dict[str, IO[str]] = {}
        self._wiped_inode = 0
        self._without_log = WriteOptions()
        self._without_log.disable_wal = True
        home.mkdir(parents=True, exist_ok=True)

    def do(self, line: str) -> None:
        """Do one line of a story: a command, its arguments, perhaps a comment."""
        command, *arguments = line.split("#")[0].strip().split(" ")
        if not command:
            return
        method = getattr(self, f"do_{command}", None)
        if method is None:
            sys.stderr.write(f"no such command: {command}\n")
            sys.exit(WRONG_COMMAND)
        method(*arguments)

    def do_applock(self) -> None:
        """Take the application lock and leave the process file, as a starting instance does."""
        self._lock(self._home)
        if not (self._home / PROCESS_FILE).exists():
            (self._home / PROCESS_FILE).write_text(PROCESS)

    def do_tasklock(self, task: str) -> None:
        """Take the lock of a task directory (up to 2.8 it is a file lock)."""
        self.do_mkdir(task)
        self._lock(self._home / task)

    def do_taskunlock(self, task: str) -> None:
        """Let the lock of a task directory go."""
        self._locks.pop(str(self._home / task)).close()

    def do_open(self, task: str, store: str, segment: str | None = None) -> None:
        """Open a store or a segment of it."""
        self._open((task, store, segment), store_options())

    def do_openpaths(self, task: str, store: str) -> None:
        """Open a store whose data files lie on a second path, as `db_paths` of a RocksDBConfigSetter asks."""
        second = self._home.parent.parent / "second" / task / store
        second.mkdir(parents=True, exist_ok=True)
        options = store_options()
        options.set_db_paths([DBPath(str(second), SECOND_PATH_BYTES)])
        self._open((task, store, None), options)

    def do_open43(self, task: str, store: str, segment: str | None = None) -> None:
        """Open as Kafka Streams 4.3 does: with the family `offsets`, whose status says open from now on."""
        self._open((task, store, segment), store_options(), OFFSETS_FAMILY)
        self.do_status(task, store, "1", segment)

    def do_opendual(self, task: str, store: str) -> None:
        """Open a store that was written before it kept timestamps: two families, until every key was put again."""
        self._open((task, store, None), store_options(), TIMESTAMPED_FAMILY)

    def do_status(self, task: str, store: str, status: str, segment: str | None = None) -> None:
        """4.3: put the status, 1 open, 0 closed."""
        self._families[task, store, segment][b"status"] = long(status)

    def do_offset(self, task: str, store: str, topic: str, offset: str, segment: str | None = None) -> None:
        """4.3: put the changelog offset of `topic`-`partition` beside the data, as a commit does."""
        self._families[task, store, segment][topic.encode()] = long(offset)

    def do_move(self, task: str, store: str, first: str, count: str) -> None:
        """Put keys into the timestamped family and delete them in the old one: no record, only reads or updates."""
        database, family = self._stores[task, store, None], self._families[task, store, None]
        for number in range(int(first), int(first) + int(count)):
            del database[b"k%08d" % number]
            family[b"k%08d" % number] = b"v" * 58

    def do_put(self, task: str, store: str, first: str, count: str, segment: str | None = None) -> None:
        """Put `count` keys, from number `first` on."""
        database = self._stores[task, store, segment]
        for number in range(int(first), int(first) + int(count)):
            database[b"k%08d" % number] = b"v" * 50

    def do_put2(self, task: str, store: str, first: str, count: str, segment: str | None = None) -> None:
        """Put twice per record: an index entry, an old version, or the delete in the old column family."""
        database = self._stores[task, store, segment]
        for number in range(int(first), int(first) + int(count)):
            database[b"k%08d" % number] = b"v" * 50
            database[b"i%08d" % number] = b""

    def do_fl(self, task: str, store: str, first: str, count: str, key_bytes: str) -> None:
        """Put keys of a length and flush each by itself: makes a long manifest."""
        database = self._stores[task, store, None]
        for number in range(int(first), int(first) + int(count)):
            database[(b"%08d" % number).ljust(int(key_bytes), b"x")] = b"v"
            database.flush()

    def do_flush(self, task: str, store: str, segment: str | None = None) -> None:
        key = (task, store, segment)
        self._stores[key].flush()
        if key in self._families:
            self._families[key].flush()

    def do_compact(self, task: str, store: str, segment: str | None = None) -> None:
        """Compact everything into one file."""
        self._stores[task, store, segment].compact_range(None, None)

    def do_close(self, task: str, store: str, segment: str | None = None) -> None:
        """Close a store; RocksDB flushes what it holds, because there is no write-ahead log."""
        key = (task, store, segment)
        if key in self._families:
            self._families.pop(key).close()
        self._stores.pop(key).close()

    def do_ckpt(self, task: str, *words: str) -> None:
        """Write the checkpoint: `TOPIC PARTITION OFFSET`, several with `;` between them."""
        rows = [row.strip() for row in " ".join(words).split(";")]
        temporary = self._home / task / ".checkpoint.tmp"
        with temporary.open("w") as file:
            file.write("".join(f"{line}\n" for line in ("0", len(rows), *rows)))
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._home / task / ".checkpoint")

    def do_rmckpt(self, task: str) -> None:
        (self._home / task / ".checkpoint").unlink()

    def do_wipe(self, task: str) -> None:
        self._wiped_inode = (self._home / task).stat().st_ino
        shutil.rmtree(self._home / task)

    def do_rmstore(self, task: str, store: str, segment: str | None = None) -> None:
        """Delete a store and nothing else: what a deletion does that is cut short after it."""
        shutil.rmtree(self._path((task, store, segment)))

    def do_mkdir(self, task: str) -> None:
        (self._home / task).mkdir(exist_ok=True)

    def do_mksame(self, task: str) -> None:
        """Make a task directory with the inode number of the one wiped last, as ext4 and xfs often do by themselves."""
        made: list[Path] = []
        for number in range(CHANCES):
            path = self._home / f"f{number}"
            path.mkdir()
            if path.stat().st_ino == self._wiped_inode:
                path.rename(self._home / task)
                break
            made.append(path)
        for path in made:
            path.rmdir()
        if not (self._home / task).exists():
            sys.exit(NO_INODE)

    def do_sleep(self, seconds: str) -> None:
        """Do nothing for a while: how long is part of the story."""
        time.sleep(float(seconds))

    def do_kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def do_done(self, marker: str) -> None:
        """Leave a file: all that was told before is done."""
        Path(marker).touch()

    def do_say(self, *words: str) -> None:
        """Tell somebody who watches."""
        print(" ".join(words), flush=True)

    def _path(self, key: StoreKey) -> Path:
        task, store, segment = key
        return self._home / task / (f"{store}/{segment}" if segment else f"rocksdb/{store}")

    def _open(self, key: StoreKey, options: Options, family: str = "") -> None:
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        more = {family: store_options()} if family else {}
        database = Rdict(str(path), options, column_families=more)
        database.set_write_options(self._without_log)
        self._stores[key] = database
        if family:
            self._families[key] = database.get_column_family(family)
            self._families[key].set_write_options(self._without_log)
        with suppress(FileNotFoundError):
            (path / "rocksdict-config.json").unlink()

    def _lock(self, directory: Path) -> None:
        file = (directory / ".lock").open("a+")
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._locks[str(directory)] = file


def main(arguments: list[str]) -> None:
    """Do what standard input says, line by line."""
    state_dir, application = arguments
    instance = Application(Path(state_dir) / application)
    for line in sys.stdin:
        instance.do(line)


if __name__ == "__main__":
    main(sys.argv[1:])
