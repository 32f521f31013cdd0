"""Recorded scenarios: what was recorded, on which pods, and which findings it must lead to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding that the recording must lead to. Any of `detectors` is as good; None = any severity."""

    detectors: tuple[str, ...]
    task_id: str
    pod: str
    severity: str | None


@dataclass(frozen=True, slots=True)
class Scenario:
    """One recorded scenario.

    Args of the dataclass:
        id: Its folder name.
        issue: Upstream issue key; empty if there is none.
        release: Kafka Streams release of the recording.
        application_id: The application.
        settings: What an operator would configure.
        traces: Pod -> trace.
        expected: Findings that must be made.
    """

    id: str
    issue: str
    release: str
    application_id: str
    settings: Mapping[str, str]
    traces: Mapping[str, Path]
    expected: tuple[Expected, ...]


def load_scenario(folder: Path) -> Scenario:
    """Read the `scenario.json` of a recorded scenario."""
    document = json.loads((folder / "scenario.json").read_text(encoding="utf-8"))
    return Scenario(
        id=document["id"],
        issue=document["jira"] or "",
        release=document["kafka_streams_version"],
        application_id=document["application_id"],
        settings={key: str(value) for key, value in document["settings"].items()},
        traces={pod["name"]: folder / pod["trace"] for pod in document["pods"]},
        expected=tuple(_expected(item) for item in document["expect"]["find"]),
    )


def _expected(item: Mapping[str, Any]) -> Expected:
    detector = item["detector"]
    return Expected(
        detectors=(detector,) if isinstance(detector, str) else tuple(detector),
        task_id=item["task_id"],
        pod=item["pod"],
        severity=item.get("severity"),
    )
