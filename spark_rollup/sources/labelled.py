"""A source whose events get a cluster that their agents did not name."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_rollup.sources.base import Batch, Ends, Source
from spark_rollup.sources.files import FileSource, Store


@dataclass(frozen=True, slots=True)
class Labelled:
    """Another source, with the cluster that its events are of; what an agent says itself wins.

    Args of the dataclass:
        source: Where events come from.
        cluster: Name of the cluster.
    """

    source: Source
    cluster: str

    @property
    def name(self) -> str:
        """The source as a person wrote it."""
        return self.source.name

    def batch(self, spark: SparkSession, known: Ends) -> Batch:
        """Give everything that is new.

        Raises:
            SourceError: as the source does.
        """
        return self._labelled(self.source.batch(spark, known))

    def stream(self, spark: SparkSession, known: Ends) -> DataFrame:
        """Give the source's streaming frame.

        Raises:
            SourceError: as the source does.
        """
        return self.source.stream(spark, known)

    def batch_of(self, frame: DataFrame, known: Ends) -> Batch:
        """Make a batch of what one turn of the stream brought."""
        return self._labelled(self.source.batch_of(frame, known))

    def _labelled(self, batch: Batch) -> Batch:
        return _labelled(batch, self.cluster)


class LabelledFiles(FileSource):
    """Files whose events are of a cluster; what an agent says itself wins."""

    def __init__(self, store: Store, cluster: str) -> None:
        """Take files from a store.

        Args:
            store: Where they are.
            cluster: Name of the cluster.
        """
        super().__init__(store)
        self._cluster = cluster

    def part(self, spark: SparkSession, fresh: Mapping[str, int], lost: Set[str] = frozenset()) -> Batch:
        """Make a batch of some files, as `FileSource.part` does."""
        return _labelled(super().part(spark, fresh, lost), self._cluster)


def labelled(source: Source, cluster: str) -> Source:
    """Give a source whose events are of a cluster."""
    if isinstance(source, FileSource):
        return LabelledFiles(source._store, cluster)
    return Labelled(source, cluster)


def _labelled(batch: Batch, cluster: str) -> Batch:
    own = F.when(F.col("cluster") != "", F.col("cluster"))
    events = batch.loaded.events.withColumn("cluster", F.coalesce(own, F.lit(cluster)))
    return replace(batch, loaded=replace(batch.loaded, events=events))
