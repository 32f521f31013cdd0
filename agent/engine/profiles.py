"""Which releases wrote an application's directory: evidence from the inventory, joined with the operator's word."""

from __future__ import annotations

from agent.inventory.disk import LockState
from agent.inventory.model import Application
from agent.inventory.settings import SettingsBook
from agent.layout.names import OFFSETS_FAMILY
from agent.layout.profile import Evidence, Profile, infer


class Profiles:
    """Computes profiles, and remembers each until its evidence changes."""

    def __init__(self, settings: SettingsBook) -> None:
        self._settings = settings
        self._known: dict[str, tuple[Evidence, Profile]] = {}

    def of(self, application: Application) -> Profile:
        """Profile of an application by what is known now."""
        evidence = self._evidence(application)
        known = self._known.get(application.id)
        if known is not None and known[0] == evidence:
            return known[1]
        profile = infer(evidence)
        self._known[application.id] = (evidence, profile)
        return profile

    def _evidence(self, application: Application) -> Evidence:
        settings = self._settings.of(application.id)
        return Evidence(
            rocksdb_versions=_latest(application),
            offsets_family=_has_offsets_family(application),
            task_lock_held=_locks_now(application),
            process_file=True if application.process_id is not None else None,
            position_files=application.positions_seen,
            process_version=application.process_version,
            operator=settings.text("kafka_streams_version"),
            transactional_stores=settings.transactional_stores,
            seen_transactional=_seen_transactional(application),
        )


def _has_offsets_family(application: Application) -> bool:
    """Whether stores have the column family `offsets`, as far as is known.

    A wipe takes it away for a while; it is gone for good where newer stores came without it, and none has it.
    """
    if application.offsets_family_us >= application.plain_us:
        return application.offsets_family_us > 0
    return application.offsets_family_us > 0 and any(
        OFFSETS_FAMILY in database.families
        for task in application.tasks.values()
        for database in task.databases
    )


def _seen_transactional(application: Application) -> bool | None:
    """Say what the newest offset on disk shows; None = none shows it."""
    if not application.transactional_us and not application.marked_us:
        return None
    return application.transactional_us > application.marked_us


def _latest(application: Application) -> frozenset[str]:
    """The RocksDB version that wrote last: an upgraded directory keeps older option files for a while."""
    if not application.rocksdb_versions:
        return frozenset()
    return frozenset({max(application.rocksdb_versions, key=lambda x: application.rocksdb_versions[x])})


def _locks_now(application: Application) -> bool:
    """Task locks show the process that holds them now, not of one before an upgrade."""
    if not application.task_lock_ever_held:
        return False  # 2.8+ holds none: no need to ask ten thousand tasks at every judgement
    return any(task.lock is LockState.HELD for task in application.tasks.values())
