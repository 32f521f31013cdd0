"""A family as text is, byte by byte, what prometheus_client writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, exposition
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from agent.publish.family_text import (
    OPENMETRICS,
    OPENMETRICS_END,
    TEXT,
    exemplar_text,
    head_text,
    labels_text,
    number_text,
    series_text,
)
from agent.publish.metric import Metric, MetricKind

GAUGE = Metric(
    "statewarden_x_bytes", MetricKind.GAUGE, 'Help with \\ and "quotes"\nand a line.', "bytes", ("b", "a")
)
COUNTER = Metric("statewarden_y_seconds_total", MetricKind.COUNTER, "Help.", "seconds", ("b", "a"))
INFO = Metric("statewarden_z_info", MetricKind.INFO, "Help.", labels=("version",))

_TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)
_SERIES = st.dictionaries(st.tuples(_TEXTS, _TEXTS), st.floats(), max_size=4)


class _One(CollectorRegistry):
    def __init__(self, family: Family) -> None:
        super().__init__()
        self._family = family

    def collect(self) -> Iterator[Family]:
        """Yield the family."""
        yield self._family


def by_library(metric: Metric, series: dict[tuple[str, ...], float], *, openmetrics: bool) -> str:
    """Write a family with prometheus_client; a counter gets an exemplar at every series."""
    family: InfoMetricFamily | CounterMetricFamily | GaugeMetricFamily
    if metric.kind is MetricKind.INFO:
        family = InfoMetricFamily(metric.name.removesuffix("_info"), metric.help, labels=())
        for values in series:
            family.add_metric((), dict(zip(metric.labels, values, strict=True)))
    elif metric.kind is MetricKind.COUNTER:
        family = CounterMetricFamily(
            metric.name.removesuffix("_total"), metric.help, labels=metric.labels, unit=metric.unit
        )
        for values, value in series.items():
            family.add_metric(values, value, exemplar=Exemplar({"id": values[0]}, 1.0))
    else:
        family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels, unit=metric.unit)
        for values, value in series.items():
            family.add_metric(values, value)
    if openmetrics:
        body = openmetrics_exposition.generate_latest(_One(family))  # type: ignore[no-untyped-call]
        return str(body, "utf-8").removesuffix(OPENMETRICS_END)
    return exposition.generate_latest(_One(family)).decode()


def by_us(metric: Metric, series: dict[tuple[str, ...], float], *, openmetrics: bool) -> str:
    """Write the same with our text."""
    shown = {
        labels_text(metric.labels, key): exemplar_text({"id": key[0]})
        for key in series
        if openmetrics and metric.kind is MetricKind.COUNTER
    }
    rows = [(labels_text(metric.labels, key), value) for key, value in series.items()]
    return head_text(metric, openmetrics=openmetrics) + series_text(metric.name, rows, shown)


@pytest.mark.parametrize("openmetrics", [False, True])
@pytest.mark.parametrize("metric", [GAUGE, COUNTER], ids=["gauge", "counter"])
@given(series=_SERIES)
def test_a_family_is_written_as_the_library_does(
    metric: Metric, openmetrics: bool, series: dict[tuple[str, ...], float]
) -> None:
    """Any names and numbers give the library's text."""
    assert by_us(metric, series, openmetrics=openmetrics) == by_library(
        metric, series, openmetrics=openmetrics
    )


@pytest.mark.parametrize("openmetrics", [False, True])
def test_an_info_is_written_as_the_library_does(openmetrics: bool) -> None:
    """An info has another name and type in each of the two forms."""
    series: dict[tuple[str, ...], float] = {("1.2.3",): 1.0}
    assert by_us(INFO, series, openmetrics=openmetrics) == by_library(INFO, series, openmetrics=openmetrics)


@given(value=st.one_of(st.floats(), st.integers(-(10**30), 10**30), st.booleans()))
def test_numbers_are_written_as_go_does(value: float) -> None:
    """Any number gives the library's text."""
    assert number_text(value) == floatToGoString(value)  # type: ignore[no-untyped-call]


def test_content_types_are_the_library_s() -> None:
    """What the scraper is told about the form is what the library tells it."""
    assert exposition.CONTENT_TYPE_PLAIN_0_0_4 == TEXT
    assert openmetrics_exposition.CONTENT_TYPE_LATEST == OPENMETRICS


def test_labels_must_fit_their_names() -> None:
    """A series with too many or too few values is refused: it would be another series."""
    with pytest.raises(ValueError, match="zip"):
        labels_text(("a", "b"), ("1",))
