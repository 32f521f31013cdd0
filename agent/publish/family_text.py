"""One family of metrics as text: Prometheus 0.0.4, or OpenMetrics 1.0 where a scraper asks for it.

Written here and not by prometheus_client: of ten thousand tasks the library took half a second of CPU per scrape, and
importing it brings an HTTP server, an HTTP client and OpenSSL into every pod, 12 MiB. Its tests compare this text with
the library's, byte by byte.

Source:
    Prometheus, "Exposition formats", text format 0.0.4; OpenMetrics 1.0. Numbers are written as Go does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agent.publish.metric import Metric, MetricKind

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
OPENMETRICS_END = "# EOF\n"

_NOT_FINITE = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}
_LONGEST_PLAIN = 6
"""Digits before the point from which on Go writes an exponent, less one; Python does so from 16 on."""


def head_text(metric: Metric, *, openmetrics: bool) -> str:
    """Write what comes before the series of a family: meaning, type and unit."""
    if not openmetrics:
        kind = MetricKind.GAUGE if metric.kind is MetricKind.INFO else metric.kind
        help_text = metric.help.replace("\\", r"\\").replace("\n", r"\n")
        return f"# HELP {metric.name} {help_text}\n# TYPE {metric.name} {kind}\n"
    name = metric.name.removesuffix("_total").removesuffix("_info")
    unit = metric.unit if metric.unit and name.endswith(f"_{metric.unit}") else ""
    lines = [f"# HELP {name} {_escaped(metric.help)}\n# TYPE {name} {metric.kind}\n"]
    return "".join([*lines, f"# UNIT {name} {unit}\n"] if unit else lines)


def labels_text(names: Sequence[str], values: Sequence[str]) -> str:
    """Write labels in the order of their names, braces included; empty without labels.

    Raises:
        ValueError: there are not as many values as names.
    """
    pairs = sorted(zip(names, values, strict=True))
    return (
        "{" + ",".join(f'{name}="{_escaped(_printable(value))}"' for name, value in pairs) + "}"
        if pairs
        else ""
    )


def series_text(name: str, series: Iterable[tuple[str, float]], exemplars: Mapping[str, str]) -> str:
    """Write one line per series.

    Args:
        name: Of the family.
        series: Labels as text, value.
        exemplars: Labels as text -> exemplar as text; for OpenMetrics only.
    """
    if not exemplars:
        return "".join([f"{name}{labels} {number_text(value)}\n" for labels, value in series])
    return "".join(
        [f"{name}{labels} {number_text(value)}{exemplars.get(labels, '')}\n" for labels, value in series]
    )


def exemplar_text(labels: Mapping[str, str]) -> str:
    """Write an exemplar of value 1, without a time."""
    return f" # {labels_text(tuple(labels), tuple(labels.values()))} 1.0"


def number_text(value: float) -> str:
    """Write a number as Go does."""
    text = repr(float(value))
    dot = text.find(".")
    if dot > _LONGEST_PLAIN and value > 0:
        mantissa = f"{text[0]}.{text[1:dot]}{text[dot + 1 :]}".rstrip("0.")
        return f"{mantissa}e+{dot - 1:02d}"
    return text if dot > 0 else _NOT_FINITE.get(text, text)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _printable(value: str) -> str:
    """Escape what is not UTF-8, as a hostile directory name may bring; distinct names stay distinct."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
