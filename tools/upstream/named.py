"""Upstream issues as detectors name them."""

from __future__ import annotations

from agent.detectors import DETECTORS
from agent.judging.base import Upstream


def named_upstream() -> dict[str, list[tuple[Upstream, str]]]:
    """Map each key that detectors name to what they say of it: releases and fix, and the detector's id."""
    named: dict[str, list[tuple[Upstream, str]]] = {}
    for detector in DETECTORS:
        for upstream in detector.meta.upstream:
            named.setdefault(upstream.key, []).append((upstream, detector.meta.id))
    return named
