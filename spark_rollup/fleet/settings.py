"""Effective settings per application: what the agents reported, and what `--set` overrides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agent.contract.events import Kind
from agent.contract.reporting import DISABLED_PREFIX, REPEAT_S
from spark_rollup.config import INTEGER_KEYS, KEYS, Override
from spark_rollup.fleet.events import Event
from spark_rollup.fleet.rows import Release, Settings

DEFAULT_SESSION_TIMEOUT_MS = 45_000  # consumer default since 3.0 (KIP-735)
OLD_SESSION_TIMEOUT_MS = 10_000  # up to 2.8
DEFAULT_PROBING_MS = 600_000  # probing.rebalance.interval.ms, since 2.6 (KIP-441)
DEFAULT = "default"
"""Origin of a value that was not configured: an agent assumed it, and the fleet counts it as not known."""
LASTS_US = 2 * REPEAT_S * 1_000_000
"""A pod whose newest report is so much older than another one's runs no more: reports are repeated."""
NEVER_GUESSED = ("processing_guarantee", "kafka_streams_version")
"""Without the first most bugs of exactly-once go unreported, without the second some others."""


def effective(application: str, events: Iterable[Event], overrides: Sequence[Override]) -> Settings:
    """Find an application's settings; the newest report of any pod counts, `--set` wins.

    Detectors are disabled by each pod's newest report. `not_given` lists those of `NEVER_GUESSED` that no agent
    reported: what `--set` says comes too late for its detectors.
    """
    reports = sorted(
        (x for x in events if x.kind == Kind.CONFIGURATION.value and not x.routine),
        key=lambda x: (-x.observed_at_us, x.pod, -x.sequence),
    )
    values: dict[str, str] = {}
    latest: dict[str, Event] = {}
    for x in reports:
        latest.setdefault(x.pod, x)
        for row in x.settings or ():
            if row.value is not None and row.origin not in (None, DEFAULT):
                values.setdefault(row.key, row.value)
    not_given = [key for key in NEVER_GUESSED if key not in values]
    chosen = dict(_overridden(application, overrides))
    values |= chosen
    # across pods (a rolling upgrade) the range is the union of what each allows
    lasting = [x for x in latest.values() if x.observed_at_us >= reports[0].observed_at_us - LASTS_US]
    low = [parts for x in lasting if (parts := release_parts(_told_release(x) or x.release_low))]
    high = [parts for x in lasting if (parts := release_parts(_told_release(x) or x.release_high))]
    exact = release_parts(chosen.get("kafka_streams_version"))
    disabled = sorted(
        (one for x in latest.values() for one in _disabled(x)), key=lambda x: (x[0], x[1], x[2] or "")
    )
    first, last = exact or min(low, default=None), exact or max(high, default=None)
    return _with_defaults(values, first, last, not_given, disabled)


def _with_defaults(
    values: Mapping[str, str], low: Release | None, high: Release | None, not_given: Sequence[str],
    disabled: Sequence[tuple[str, str, str | None]],
) -> Settings:  # fmt: skip
    number = {key: _whole(values.get(key)) for key in INTEGER_KEYS}
    # an unknown release gets the longer of the two defaults: later is safer than wrong
    session, probing = number["session_timeout_ms"], number["probing_rebalance_interval_ms"]
    if session is None:
        is_old = high is not None and tuple(high) < (3, 0)
        session = OLD_SESSION_TIMEOUT_MS if is_old else DEFAULT_SESSION_TIMEOUT_MS
    if high is not None and tuple(high) < (2, 6):
        probing = 0
    return Settings(
        number["num_standby_replicas"], values.get("processing_guarantee"), number["commit_interval_ms"],
        low, high, session, DEFAULT_PROBING_MS if probing is None else probing, not_given, disabled,
    )  # fmt: skip


def _overridden(application: str, overrides: Sequence[Override]) -> Iterator[tuple[str, str]]:
    for whose in (None, application):
        yield from ((x.key, x.value) for x in overrides if x.application_id == whose and x.key in KEYS)


def _told_release(report: Event) -> str | None:
    told = (x for x in report.settings or () if x.origin not in (None, DEFAULT))
    return next((x.value for x in told if x.key == "kafka_streams_version"), None)


def _disabled(report: Event) -> Iterator[tuple[str, str, str | None]]:
    """List pod, detector and reason of every detector that one report names as disabled."""
    for row in report.settings or ():
        if row.key is not None and row.key.startswith(DISABLED_PREFIX):
            yield report.pod, row.key.rpartition(".")[2], row.value


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\s*[+-]?\d{1,18}\s*", text) else None


def release_parts(version: str | None) -> list[int] | None:
    """Split a release such as `3.9.2` into numbers."""
    found = re.match(r"\d+(\.\d+)*", version or "")
    return [int(part) for part in found[0].split(".")] if found else None
