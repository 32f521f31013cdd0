"""The detectors, one module each, in the order of docs and output. No detector knows another."""

from __future__ import annotations

from agent.detectors import (
    auditor_blind,
    carried_checkpoint,
    changelog_truncated,
    data_beyond_changelog,
    deleted_while_held,
    false_clean_store,
    frozen_checkpoint,
    interrupted_wipe,
    lost_segment,
    malformed_checkpoint,
    offset_beyond_durable,
    orphaned_task,
    overlaid_store,
    premature_cleanup,
    resurrected_checkpoint,
    setup,
    skipped_eos_wipe,
    skipped_record,
    stale_eos_checkpoint,
    stale_segment_offset,
    startup_lock_leak,
    store_shrank,
    torn_store,
    undecided,
    unopenable_task,
    unowned_task,
    unrestored_store,
    zombie_state,
)
from agent.judging.base import Detector

_MODULES = (
    resurrected_checkpoint,
    carried_checkpoint,
    unowned_task,
    stale_eos_checkpoint,
    skipped_eos_wipe,
    interrupted_wipe,
    unrestored_store,
    startup_lock_leak,
    unopenable_task,
    false_clean_store,
    lost_segment,
    stale_segment_offset,
    premature_cleanup,
    frozen_checkpoint,
    malformed_checkpoint,
    overlaid_store,
    skipped_record,
    torn_store,
    zombie_state,
    orphaned_task,
    setup,
    changelog_truncated,
    offset_beyond_durable,
    store_shrank,
    data_beyond_changelog,
    deleted_while_held,
    undecided,
    auditor_blind,
)

DETECTORS: tuple[Detector, ...] = tuple(
    getattr(module, "DETECTOR", None) or Detector(module.META, module.judge) for module in _MODULES
)

BY_ID = {detector.meta.id: detector for detector in DETECTORS}

ACCEPTABLE = tuple(x.meta.id for x in DETECTORS if x.meta.lowers_risk)
"""Detectors that report exposures by release or settings, which the operator may accept."""
