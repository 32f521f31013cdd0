"""The audit as Prometheus metrics: a text file for the node exporter's collector, or a push to a Pushgateway."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from spark_rollup.errors import UsageError

Row = Mapping[str, object]

PUSH_TIMEOUT_S = 10

_LABELS = ("rule", "severity", "confidence", "status", "namespace", "application")


def render(findings: Sequence[Row], coverage: Sequence[Row], quarantined: int, as_of_us: int) -> str:
    """Write the metrics in Prometheus' text format.

    Args:
        findings: `schemas.FINDING` rows.
        coverage: `schemas.COVERAGE` rows.
        quarantined: Number of unusable lines and files.
        as_of_us: The audit's time, microseconds since the epoch.
    """
    counts = Counter(
        tuple(
            str(row[key] or "")
            for key in ("detector", "severity", "confidence", "status", "namespace", "application_id")
        )
        for row in findings
    )
    lines = [
        "# HELP statewarden_fleet_findings Findings of the last fleet audit.",
        "# TYPE statewarden_fleet_findings gauge",
        *(
            f"statewarden_fleet_findings{_labels(_LABELS, key)} {count}"
            for key, count in sorted(counts.items())
        ),
        "# HELP statewarden_fleet_watched_ratio Share of a pod's time that was watched.",
        "# TYPE statewarden_fleet_watched_ratio gauge",
        *(
            f"statewarden_fleet_watched_ratio{_labels(('namespace', 'pod'), (row['namespace'], row['pod']))} "
            f"{row['watched_ratio']}"
            for row in coverage
            if row["watched_ratio"] is not None
        ),
        "# HELP statewarden_fleet_quarantined Lines and files of the input that could not be used.",
        "# TYPE statewarden_fleet_quarantined gauge",
        f"statewarden_fleet_quarantined {quarantined}",
        "# HELP statewarden_fleet_watermark_seconds Time up to which the last audit looked.",
        "# TYPE statewarden_fleet_watermark_seconds gauge",
        f"statewarden_fleet_watermark_seconds {as_of_us / 1e6:.6f}",
    ]
    return "\n".join(lines) + "\n"


def _labels(names: Sequence[str], values: Sequence[object]) -> str:
    return (
        "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)) + "}"
    )


def _escaped(value: object) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def write_textfile(text: str, target: Path) -> None:
    """Put the metrics where the node exporter reads them, never half a file.

    Raises:
        UsageError: the place cannot be written.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, target)  # noqa: PTH105 - atomic, as the collector needs it
    except OSError as error:
        raise UsageError(f"--textfile {target} cannot be written: {error.strerror or error}") from error


def push(text: str, gateway: str) -> None:
    """Replace this job's group on a Pushgateway.

    Raises:
        UsageError: no http address, or the gateway refuses or cannot be reached.
    """
    if not gateway.startswith(("http://", "https://")):
        raise UsageError(f"--pushgateway {gateway!r} must begin with http:// or https://")
    url = f"{gateway.rstrip('/')}/metrics/job/statewarden_rollup"
    headers = {"Content-Type": "text/plain; version=0.0.4"}
    request = urllib.request.Request(url, text.encode(), headers, method="PUT")  # noqa: S310 - checked above
    try:
        with urllib.request.urlopen(request, timeout=PUSH_TIMEOUT_S):  # noqa: S310
            pass
    except (urllib.error.URLError, OSError) as error:
        raise UsageError(f"--pushgateway {gateway}: {getattr(error, 'reason', error)}") from error
