"""The exposition holds what the catalogue says, as zeros from the first scrape, and never breaks as a whole."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from agent.contract.events import Confidence, Level, Severity
from agent.contract.incidents import Configured
from agent.detectors import auditor_blind, overlaid_store, stale_eos_checkpoint
from agent.engine.detector_runner import DetectorStats
from agent.engine.rows import StoreRow, TaskRow
from agent.findings.ledger import Reported
from agent.publish.catalogue import CATALOGUE
from agent.publish.exposition import Exposition
from agent.publish.metric import Metric, MetricKind, Series
from agent.publish.snapshot import DigestMetrics, IncidentRow, MetricsSnapshot, WatchMetrics
from agent.ship.shipper import ShipStats
from agent.ship.values import SpoolStats

OPENMETRICS = "application/openmetrics-text"
DETECTORS = (
    stale_eos_checkpoint.META,
    replace(overlaid_store.META, severity=Severity.INFO),
    auditor_blind.META,
)
GOLDEN = Path(__file__).parent / "exposition.txt"

FULL = MetricsSnapshot(
    agent_version="1.2.3",
    up=True,
    ready=True,
    applications=("orders", "quiet"),
    tasks=(
        TaskRow("orders", "0_0", True, 1234567890, 1_700_000_000_500_000, 42, 4096, 2, 1_700_000_001_000_000,
                    Severity.CRITICAL, stores=(StoreRow("counts", True, 1234567890, 42, 4096),)),
        TaskRow("orders", "0_1", held=None),
        TaskRow("orders", "0_2", last_seen_at_us=1_700_000_000_000_000, exists=False),
    ),
    findings={("orders", "stale-eos-checkpoint", "critical"): 1, ("orders", "stale-eos-checkpoint", "info"): 2},
    reported={("orders", "stale-eos-checkpoint", "critical"): Reported(3, "0123456789abcdef")},
    task_findings={
        ("orders", "0_0", "stale-eos-checkpoint", "critical"): 1, ("orders", "", "auditor-blind", "info"): 2,
    },
    unlisted=4,
    incidents=(
        IncidentRow("orders", "i-0123456789ab", "0_0, 0_1", "stale-eos-checkpoint", Severity.CRITICAL,
                    Confidence.CONFIRMED, Level.EXPOSURE, do_first="i-aaaaaaaaaaaa", named_by="skipped-eos-wipe",
                    summary="orders 0_0, 0_1 (skipped-eos-wipe, confirmed): Bad.", next_step="Do \"this\"."),
        IncidentRow("orders", "i-bbbbbbbbbbbb", "", "stale-eos-checkpoint", Severity.WARNING, Confidence.SUSPECTED,
                    Level.EXPOSURE, configured_exposure=Configured.ACCEPTED),
    ),
    incidents_unlisted=5,
    incident_counts={("orders", "critical", False): 1, ("orders", "warning", True): 1},
    exposures={("orders", "stale-eos-checkpoint", "3.9.1", "true"): 7},
    exactly_once={"orders": True, "quiet": False},
    detectors={"stale-eos-checkpoint": DetectorStats(7, 1, 0.25)},
    watch=WatchMetrics(
        watches=5, unwatched=3, events=100, queue_overflows=1, restarts=8, canary=True, canaries_missed=9,
        missed_changes={"unannounced": 2}, rescans={"start": 1}, blind_s={"queue-overflow": 1.5},
        blind_now=frozenset({"queue-overflow"}), slowed_now=frozenset({"polling"}),
        limits={"max_user_watches": 8192}, waiting=11, coalesced=12, dropped=13, reconcile_entries=14,
        reconcile_round_s=15.5, clock_steps=16, self_limited=frozenset({"slower-rescan"}),
        baselines_written=17, baseline_failures=18,
    ),
    disabled={"zombie-state": "by design"},
    observations={"seen": 9, "vanished": 1},
    last_delay_s=0.125,
    spool=SpoolStats(
        records=10, bytes=2048, segments=2, oldest_at_us=1_700_000_000_000_000, dropped={"summary": 3},
        corrupt_segments=2, write_failures=4, aside=3,
    ),
    ship=ShipStats(6, 60, {"retryable": 2}),
    heartbeat_at_us=1_700_000_002_000_000,
    resident_memory_bytes=30_000_000,
    kubernetes_events={"sent": 2},
    preflight={"clock": 1, "spool": 2},
    digests=DigestMetrics({"made": 3, "overtaken": 0, "left-out": 1, "failed": 0}, 2.5),
)  # fmt: skip


def scrape(snapshot: MetricsSnapshot) -> str:
    return Exposition(lambda: snapshot, DETECTORS).answer()[1].decode()


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Parse a text exposition; a series that occurs twice fails."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    for family in parse_text(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, f"{key} is exposed twice"
            found[key] = sample.value
    return found


def announced(text: str) -> list[tuple[str, str]]:
    """List names and types in the order of the exposition."""
    return [(line.split()[2], line.split()[3]) for line in text.splitlines() if line.startswith("# TYPE ")]


def test_catalogue_equals_exposition() -> None:
    """Every family of the catalogue is there at the first scrape, in its order, and no other."""
    types = {MetricKind.GAUGE: "gauge", MetricKind.COUNTER: "counter", MetricKind.INFO: "gauge"}
    declared = [(metric.name, types[metric.kind]) for metric in CATALOGUE]
    assert announced(scrape(MetricsSnapshot())) == declared
    assert announced(scrape(FULL)) == declared


def test_every_family_shows_a_full_snapshot() -> None:
    """Each family has at least one sample other than zero, so no reader is wired to the wrong field."""
    shown = {name for (name, _), value in samples(scrape(FULL)).items() if value}
    silent = {metric.name for metric in CATALOGUE} - shown
    assert silent == {"statewarden_agent_collector_errors_total"}


def test_golden_exposition() -> None:
    """Names, types, meanings, labels and values of a full snapshot are what they were: alerts depend on them."""
    assert list(parse_text(scrape(FULL))) == list(parse_text(GOLDEN.read_text(encoding="utf-8")))


def test_known_series_are_zero_from_the_first_scrape() -> None:
    """Detectors, causes, kinds and severities exist as zeros before anything happened, if they can become more."""
    found = samples(scrape(MetricsSnapshot(applications=("orders",), exactly_once={"orders": True})))
    for meta in DETECTORS:
        assert found["statewarden_agent_detector_failures_total", frozenset({("detector", meta.id)})] == 0
    assert by_detector(found, "statewarden_findings_total") == {
        ("orders", "stale-eos-checkpoint"): {"info", "warning", "critical"},
        ("orders", "overlaid-store"): {"info"},
        ("", "auditor-blind"): {"info", "warning"},
    }
    assert (
        found["statewarden_incidents", frozenset({("application_id", "orders"), ("severity", "critical")})]
        == 0
    )
    assert found["statewarden_agent_blind", frozenset({("cause", "queue-overflow")})] == 0
    assert found["statewarden_agent_spool_drops_total", frozenset({("kind", "finding")})] == 0


def test_zeros_have_a_bound() -> None:
    """640 leaked applications make no 76,000 series: those with tasks have zeros, and of them a hundred at most."""
    names = tuple(f"query-{n:03}" for n in range(640))
    left_over = samples(scrape(MetricsSnapshot(exactly_once=dict.fromkeys(names))))
    assert not [x for x in left_over if "query-" in str(x)]
    found = samples(scrape(MetricsSnapshot(applications=names, exactly_once=dict.fromkeys(names))))
    assert "query-099" in str(found)
    assert "query-100" not in str(found)


@pytest.mark.parametrize("exactly_once", [False, None])
def test_no_series_of_zeros_that_cannot_become_more(exactly_once: bool | None) -> None:
    """Not of a detector of another guarantee, nor, of what is open, of one that reports moments."""
    found = samples(scrape(MetricsSnapshot(applications=("orders",), exactly_once={"orders": exactly_once})))
    assert by_detector(found, "statewarden_findings_open") == {("", "auditor-blind"): {"info", "warning"}}
    assert ("orders", "overlaid-store") in by_detector(found, "statewarden_findings_total")


def by_detector(
    found: dict[tuple[str, frozenset[tuple[str, str]]], float], family: str
) -> dict[tuple[str, str], set[str]]:
    """List a family's severities by application and detector."""
    rows = [dict(labels) for name, labels in found if name == family]
    every: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        every.setdefault((row["application_id"], row["detector"]), set()).add(row["severity"])
    return every


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("", "text/plain; version=0.0.4"),
        ("text/html, */*", "text/plain; version=0.0.4"),
        (f"{OPENMETRICS};version=x", "text/plain; version=0.0.4"),
        ("text/plain;version=0.0.4;q=0.5", "text/plain; version=0.0.4"),
        ("text/plain;version=1.0.0;escaping=allow-utf-8", "text/plain; version=1.0.0"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0"),
        (f"{OPENMETRICS};version=1.0.0;q=0.8,text/plain;q=0.5", "application/openmetrics-text; version=1.0.0"),
    ],
)  # fmt: skip
def test_the_form_is_what_the_scraper_reads(accept: str, content_type: str) -> None:
    """Each form says what it is, parses strictly as that, and holds the same families."""
    headers, body = Exposition(lambda: FULL, DETECTORS).answer(accept)
    said = dict(headers)["Content-Type"]
    assert said.startswith(content_type)
    if "openmetrics" in said:
        assert body.endswith(b"# EOF\n")
        families = {x.name for x in parse_openmetrics(body.decode())}  # type: ignore[no-untyped-call]
        assert families == {m.name.removesuffix("_total").removesuffix("_info") for m in CATALOGUE}
    else:
        assert list(parse_text(body.decode())) == list(parse_text(scrape(FULL)))


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_gzip_on_request(accept: str) -> None:
    """A scraper that reads gzip gets the same text in a tenth of the bytes; any other gets plain text."""
    exposition = Exposition(lambda: FULL, DETECTORS)
    plain_headers, plain = exposition.answer(accept, "identity, deflate")
    headers, packed = exposition.answer(accept, "deflate, gzip;q=1.0")
    assert gzip.decompress(packed) == plain
    assert set(headers) - set(plain_headers) == {("Content-Encoding", "gzip")}
    assert len(packed) < len(plain) / 4


def broken(_: MetricsSnapshot) -> Series:
    raise RuntimeError("no")


def misfit(_: MetricsSnapshot) -> Series:
    """Read a series with a label too many."""
    return {("orders", "0_0"): 1.0}


@pytest.mark.parametrize("read", [broken, misfit])
def test_a_broken_family_is_counted_and_the_others_stay(
    read: Callable[[MetricsSnapshot], Series], caplog: pytest.LogCaptureFixture
) -> None:
    """One reader that fails leaves its own family empty and is counted, scrape by scrape."""

    def altered(metric: Metric) -> Metric:
        return replace(metric, read=read) if metric.name == "statewarden_tasks" else metric

    exposition = Exposition(lambda: FULL, DETECTORS, [altered(metric) for metric in CATALOGUE])
    with caplog.at_level(logging.CRITICAL):
        exposition.answer()
        text = exposition.answer()[1].decode()
    found = samples(text)
    assert found["statewarden_agent_collector_errors_total", frozenset()] == 2
    assert not [name for name, _ in found if name == "statewarden_tasks"]
    assert ("statewarden_tasks", "gauge") in announced(text)
    assert found["statewarden_agent_watches", frozenset()] == 5


def test_a_clock_that_was_set_back_gives_no_negative_age() -> None:
    """A record from the future is as old as one of now."""
    found = samples(scrape(replace(FULL, heartbeat_at_us=1_600_000_000_000_000)))
    assert found["statewarden_agent_spool_oldest_unshipped_age_seconds", frozenset()] == 0


def test_exemplars_name_the_newest_finding() -> None:
    """Asked for OpenMetrics, the count of findings carries the id that `statewarden explain` takes."""
    body = Exposition(lambda: FULL, DETECTORS).answer(OPENMETRICS)[1].decode()
    line = next(
        x for x in body.splitlines() if 'severity="critical"' in x and "findings_total" in x and " 3.0" in x
    )
    assert line.endswith('# {finding_id="0123456789abcdef"} 1.0')
    assert "0123456789abcdef" not in scrape(FULL)


@pytest.mark.parametrize("change", [lambda s: (s.tasks[0], s.tasks[0]), lambda s: s.tasks[::-1]])
def test_doubled_rows_are_exposed_once(change: Callable[[MetricsSnapshot], tuple[TaskRow, ...]]) -> None:
    """A task that occurs twice, or in another order, gives each series once and the same count."""
    tasks = change(FULL)
    found = samples(scrape(MetricsSnapshot(tasks=tasks)))
    expected = len({task.task_id for task in tasks if task.exists})
    assert found["statewarden_tasks", frozenset({("application_id", "orders")})] == expected


@example(names=["a\udcff", "a\\udcff", "a\nb"])
@given(names=st.lists(st.text(st.characters(exclude_categories=())), min_size=1, max_size=4))
def test_hostile_names_never_break_the_scrape(names: list[str]) -> None:
    """Any directory name gives a scrape that is UTF-8, free of duplicates and complete."""
    tasks = tuple(TaskRow(name, "0_0", held=True) for name in names)
    text = Exposition(lambda: MetricsSnapshot(tasks=tasks), DETECTORS).answer()[1].decode("utf-8")
    printable = {name.encode("utf-8", "backslashreplace") for name in names}
    held = [line for line in text.split("\n") if line.startswith("statewarden_task_held{")]
    assert len(held) == len(set(held)) == len(printable)
