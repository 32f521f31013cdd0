"""Open bronze: the jars that it needs, a session that fits it, the settings of its object store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from spark_rollup.bronze.place import Place, place_of
from spark_rollup.spark import needs, progress, session

_PROVIDERS = "fs.s3a.aws.credentials.provider"

_CHAIN = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.WebIdentityTokenFileCredentialsProvider",
    "org.apache.hadoop.fs.s3a.auth.IAMInstanceCredentialsProvider",
)
"""Hadoop's own chain (`core-default.xml` of 3.5) and, before the machine's role, the token of a service account, which
that leaves out."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Where bronze (or the input of an audit) is, and how Spark gets there.

    Args of the dataclass:
        endpoint: URL of an object store that is not AWS's own.
        jars: Directory with jars; None = where `statewarden-rollup jars` puts them.
        progress: Whether to show progress on stderr.
        debug: Whether Spark logs its errors.
    """

    where: str
    endpoint: str | None = None
    region: str | None = None
    jars: Path | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    progress: bool = False
    debug: bool = False


@contextmanager
def opened(
    opening: Opening,
    size_bytes: int | None,
    kinds: Sequence[str] = (),
    *,
    delta: bool = True,
    audits: bool = False,
) -> Iterator[tuple[SparkSession, Place]]:
    """Give a session that fits the size of what is read (None = not known yet), and the place.

    Raises:
        JarError: jars are missing.
        JavaNotFoundError: no Java runtime.
    """
    stores = [needs.S3A] if opening.where.startswith("s3a://") else []
    wanted = list(dict.fromkeys([*([needs.DELTA] if delta else []), *stores, *kinds]))
    brought = needs.bring(wanted, opening.jars, opening.conf)
    if not opening.progress:
        progress.announce(sys.stderr)
    spark = session.build_session(
        size_bytes, conf=opening.conf, jars=brought, delta=delta, debug=opening.debug, audits=audits
    )
    needs.check(spark, wanted)
    if needs.S3A in wanted:
        hadoop = spark._jsc.hadoopConfiguration()  # a session that was there already listens, too
        for key, value in store_settings(opening, os.environ).items():
            hadoop.set(key, value)
        if not spark.sparkContext.getConf().contains(f"spark.hadoop.{_PROVIDERS}"):
            for key, value in identity_settings(os.environ).items():
                hadoop.set(key, value)
    with progress.shown(spark, sys.stderr) if opening.progress else nullcontext():
        yield spark, place_of(opening.where, spark)


def store_settings(opening: Opening, environment: Mapping[str, str]) -> dict[str, str]:
    """Give Hadoop's settings for the object store; credentials are left to Hadoop's own chain."""
    region = opening.region or environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    if not opening.endpoint:
        return {"fs.s3a.endpoint.region": region} if region else {}
    return {
        "fs.s3a.endpoint": opening.endpoint,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.endpoint.region": region or "us-east-1",
    }


def identity_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Give Hadoop's settings for a pod whose service account has a role of AWS."""
    return {_PROVIDERS: ",".join(_CHAIN)} if environment.get("AWS_WEB_IDENTITY_TOKEN_FILE") else {}
