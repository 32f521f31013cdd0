"""The explicit, ordered list of detectors; its order is that of docs and output."""

from __future__ import annotations

from agent.detectors import (
    auditor_blind,
    carried_checkpoint,
    missing_fact,
    resurrected_checkpoint,
    skipped_eos_wipe,
    stale_eos_checkpoint,
    startup_pass,
    unrestored_store,
)
from agent.detectors.base import Detector

DETECTORS: tuple[Detector, ...] = (
    Detector(resurrected_checkpoint.META, resurrected_checkpoint.judge),
    Detector(carried_checkpoint.META, carried_checkpoint.judge),
    Detector(stale_eos_checkpoint.META, stale_eos_checkpoint.judge),
    Detector(skipped_eos_wipe.META, skipped_eos_wipe.judge),
    Detector(unrestored_store.META, unrestored_store.judge),
    Detector(startup_pass.META, startup_pass.judge),
    Detector(missing_fact.META, missing_fact.judge),
    Detector(auditor_blind.META, auditor_blind.judge),
)

BY_ID = {detector.meta.id: detector for detector in DETECTORS}
