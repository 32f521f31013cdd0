"""File and directory names in a state directory, each with the class that makes it.

Source: StateDirectory, OffsetCheckpoint, RocksDBStore, AbstractSegments (Kafka Streams 2.0 to 4.3) and
RocksDB's `filename.cc`; docs/state-format.md#layout.
"""

from __future__ import annotations

import re
import sys

LOCK_FILE = (
    ".lock"  # StateDirectory.LOCK_FILE_NAME: application directory (2.6.2+), task (to 2.8), global (to 2.8)
)
PROCESS_FILE = "kafka-streams-process-metadata"  # StateDirectory.PROCESS_FILE_NAME, 2.6.2+, 2.7.1+, 2.8+
CHECKPOINT_FILE = ".checkpoint"  # StateManagerUtil.CHECKPOINT_FILE_NAME
CHECKPOINT_PREFIX = ".checkpoint_"  # LegacyCheckpointingStateStore, 4.3+: one per custom store
TEMP_SUFFIX = ".tmp"  # OffsetCheckpoint writes <name>.tmp, syncs, renames
POSITION_SUFFIX = ".position"  # RocksDBStore, 3.2 to 4.2
ROCKSDB_DIRECTORY = "rocksdb"  # RocksDBStore.DB_FILE_DIR
GLOBAL_DIRECTORY = "global"  # StateDirectory.globalStateDir
STORE_LOCK_FILE = "LOCK"
IDENTITY_FILE = "IDENTITY"
CURRENT_FILE = "CURRENT"
INFO_LOG_FILE = "LOG"
FIRST_MANIFEST = (
    1  # RocksDB writes this one, and CURRENT, before a new store's IDENTITY (seen live with 5.18.3)
)
OFFSETS_FAMILY = "offsets"  # column family of offsets and status, AbstractColumnFamilyAccessor, 4.3+

TASK_DIRECTORY = re.compile(r"(\d+)_(\d+)", re.ASCII)  # StateDirectory.TASK_DIR_PATH_NAME
TOPOLOGY_DIRECTORY = re.compile(r"__(.+)__", re.DOTALL)  # StateDirectory.NAMED_TOPOLOGY_DIR_PATH_NAME
MANIFEST_FILE = re.compile(r"MANIFEST-(\d+)", re.ASCII)
OPTIONS_FILE = re.compile(r"OPTIONS-(\d+)", re.ASCII)
SST_FILE = re.compile(r"(\d+)\.sst", re.ASCII)
BLOB_FILE = re.compile(
    r"(\d+)\.blob", re.ASCII
)  # values apart from keys, if a RocksDBConfigSetter asks for it
WAL_FILE = re.compile(r"(\d+)\.log", re.ASCII)
OLD_INFO_LOG_FILE = re.compile(r"LOG\.old\.(\d+)", re.ASCII)  # microseconds since the epoch
# AbstractSegments.segmentName: NAME.<start ms>; older separators `:` and `-` (date form) are renamed at open
SEGMENT_SUFFIX = re.compile(r"[.:-]\d+", re.ASCII)

# made by file systems and desktops at the top of a volume, mostly for root only: ext4, NetApp and OneFS, ZFS, btrfs,
# freedesktop.org's trash, and what kubelet puts beside projected files
OF_THE_VOLUME = re.compile(r"lost\+found|\.snapshots?|\.zfs|\.Trash(-\d+)?|\.\.data|\.\.\d{4}_.*", re.ASCII)

CHANGELOG_SUFFIX = "-changelog"  # ProcessorStateManager.storeChangelogTopic


def changelog_store(topic: str, application_id: str) -> str | None:
    """Return which store a changelog topic is of; None for one that is not `<application id>-<store>-changelog`.

    That is a source topic under topology optimisation, or a foreign application's.

    Source:
        ProcessorStateManager.storeChangelogTopic; a named topology puts its name between the two.
    """
    prefix = application_id + "-"
    if not topic.startswith(prefix) or not topic.endswith(CHANGELOG_SUFFIX):
        return None
    return sys.intern(topic[len(prefix) : -len(CHANGELOG_SUFFIX)]) or None
