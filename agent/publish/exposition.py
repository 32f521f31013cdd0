"""What `/metrics` answers: the catalogue's families, read off the latest snapshot at every scrape.

Nothing is kept between scrapes, so nothing can be emitted twice or linger. A family that cannot be computed is left
empty and counted; it never takes the scrape with it. The form is prometheus_client's business.
"""

from __future__ import annotations

import itertools
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from prometheus_client.core import Metric as Family
from prometheus_client.exposition import choose_encoder, gzip_accepted
from prometheus_client.samples import Exemplar, Sample

from agent.contract.events import Severity
from agent.judging.base import DetectorMeta, Kind, Scope
from agent.publish.catalogue import CATALOGUE
from agent.publish.http import Headers
from agent.publish.metric import Exemplars, Metric, MetricKind, Series
from agent.publish.snapshot import MetricsSnapshot

_LOG = logging.getLogger(__name__)
Applications = Mapping[str, bool | None]
"""Application -> whether it runs exactly-once; None = that was not given."""

Rows = dict[tuple[str, ...], tuple[float, Mapping[str, str] | None]]
"""Values of the labels -> value, and the labels of its exemplar."""

ZEROED = 100
"""Applications with series that are zero: of each about 120; beyond that only what happens has a series."""

_GZIP_WINDOW = 31  # zlib's word for the format of gzip


class Exposition:
    """The families over the latest snapshot, and the answer to one scrape."""

    def __init__(
        self,
        snapshot: Callable[[], MetricsSnapshot],
        detectors: Sequence[DetectorMeta],
        catalogue: Sequence[Metric] = CATALOGUE,
    ) -> None:
        """Prepare; nothing is computed before the first scrape.

        `snapshot`: gives the latest snapshot. `detectors`: what the detectors that run can report:
        those series exist from the first scrape. `catalogue`: the families, in the order of the answer.
        """
        self._snapshot = snapshot
        self._detectors = tuple(detectors)
        self._catalogue = catalogue
        self._errors = 0

    def answer(self, accept: str = "", accept_encoding: str = "") -> tuple[Headers, bytes | bytearray]:
        """Compute the answer to one scrape.

        `accept`: what the scraper says it reads: OpenMetrics if it names it, else Prometheus text 0.0.4.
        `accept_encoding`: as it says; gzip if it names it. Gives headers of the body, and the body.
        """
        try:
            encode, content_type = choose_encoder(accept)
        except TypeError:  # the library cannot compare a version that is no number
            encode, content_type = choose_encoder("")
        headers = [("Content-Type", content_type)]
        pack = None
        if gzip_accepted(accept_encoding):
            pack = zlib.compressobj(zlib.Z_BEST_SPEED, wbits=_GZIP_WINDOW)
            headers.append(("Content-Encoding", "gzip"))
        end = encode(_Families())
        body = bytearray()
        for metric, rows in self._families():  # one at a time: all of ten thousand tasks together take 30 MiB
            text = encode(_Families((_family(metric, rows),))).removesuffix(end)
            body += pack.compress(text) if pack else text
        body += pack.compress(end) + pack.flush() if pack else end
        return tuple(headers), body

    def _families(self) -> Iterator[tuple[Metric, Rows]]:
        """Read every family of the catalogue once, in its order."""
        snapshot = self._snapshot()
        applications = _applications(snapshot)
        for metric in self._catalogue:
            # the count of errors is the last family: it covers this scrape, too
            yield metric, self._rows(metric, replace(snapshot, collector_errors=self._errors), applications)

    def _rows(self, metric: Metric, snapshot: MetricsSnapshot, applications: Applications) -> Rows:
        try:
            series = {**_zeros(metric, applications, self._detectors), **metric.series(snapshot)}
            return _checked(metric, series, metric.exemplars(snapshot) if metric.exemplars else {})
        except Exception:  # noqa: BLE001 - a fence: one broken family must not blind the others
            self._errors += 1
            _LOG.exception("metric family left empty", extra={"metric": metric.name})
            return {}


@dataclass(frozen=True, slots=True)
class _Families:
    """A collector of what it is given."""

    families: tuple[Family, ...] = ()

    def collect(self) -> tuple[Family, ...]:
        return self.families


def _checked(metric: Metric, series: Series, exemplars: Exemplars) -> Rows:
    """Make sure that the library takes the series.

    Raises `ValueError`: a series has not as many values as the family has labels.
    """
    # escaped names may coincide, and one duplicate series would fail the whole scrape
    rows: Rows = {_printable(key): (float(value), exemplars.get(key)) for key, value in series.items()}
    if any(len(key) != len(metric.labels) for key in rows):
        raise ValueError(f"{metric.name} has the labels {metric.labels}")
    return rows


def _family(metric: Metric, rows: Rows) -> Family:
    name = metric.name.removesuffix("_total").removesuffix("_info")
    family = Family(name, metric.help, metric.kind.value, metric.unit)
    for key, (value, shown) in rows.items():
        labels = dict(zip(metric.labels, key, strict=True))
        exemplar = Exemplar(dict(shown), 1.0) if shown else None
        family.samples.append(Sample(metric.name, labels, value, None, exemplar))
    return family


def _printable(values: tuple[str, ...]) -> tuple[str, ...]:
    """Escape what is not UTF-8, as a hostile directory name may bring; distinct names stay distinct."""
    if "".join(values).isascii():
        return values
    return tuple(value.encode("utf-8", "backslashreplace").decode("utf-8") for value in values)


def _applications(snapshot: MetricsSnapshot) -> dict[str, bool | None]:
    """Return applications that have a task, at most `ZEROED`, and whether each runs exactly-once.

    What is left over of an application has no findings to come, and each would bring more than a hundred zeros.
    """
    of_tasks = (task.application_id for task in snapshot.tasks)
    names = dict.fromkeys((*snapshot.applications, *of_tasks))
    return {name: snapshot.exactly_once.get(name) for name in itertools.islice(names, ZEROED)}


def _zeros(metric: Metric, applications: Applications, detectors: Sequence[DetectorMeta]) -> Series:
    """Make the series that exist before anything was found: none that can never be more than zero.

    None if a label has no known values, or the reader decides whether there is one series.
    """
    known: dict[str, Iterable[str]] = {**metric.initial, "application_id": applications, "detector": ()}
    if metric.kind is MetricKind.INFO or not metric.labels or not known.keys() >= set(metric.labels):
        return {}
    each = [known]
    if "detector" in metric.labels:
        each = [
            {
                **known, "application_id": places(meta, applications), "detector": (meta.id,),
                "severity": severities(meta),
            }
            for meta in detectors
            if stays(meta) or not metric.only_open
        ]  # fmt: skip
    keys = (itertools.product(*(known[label] for label in metric.labels)) for known in each)
    return dict.fromkeys(itertools.chain.from_iterable(keys), 0.0)


def severities(meta: DetectorMeta) -> tuple[str, ...]:
    """List those that a detector's findings can have."""
    return tuple(x.value for x in Severity if x.rank <= meta.severity.rank)


def stays(meta: DetectorMeta) -> bool:
    """Return whether a detector's findings can be open: a moment's close at once."""
    return meta.kind is not Kind.EVENT


def places(meta: DetectorMeta, applications: Applications) -> list[str]:
    """List the applications that a detector can report on; the empty name where it judges the agent itself."""
    if meta.scope is Scope.AGENT:
        return [""]
    return [x for x, guarantee in applications.items() if meta.exactly_once in (None, guarantee)]
