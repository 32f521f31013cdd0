"""What `--input` says: a directory, `s3a://bucket/prefix` or `kafka://host:port,host:port/topic`. No Spark here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from spark_rollup.errors import UsageError

FORMS = "a directory, s3a://bucket/prefix, or kafka://host:port,host:port/topic"

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Names that Kafka allows. Source: `org.apache.kafka.common.internals.Topic`, all releases."""

_BROKER = re.compile(r"[^\s:/@,]+:\d{1,5}|\[[0-9a-fA-F:]+\]:\d{1,5}")


@dataclass(frozen=True, slots=True)
class DirectoryAddress:
    """A directory that this machine (and on a cluster every worker) sees."""

    path: Path


@dataclass(frozen=True, slots=True)
class ObjectAddress:
    """A prefix in a bucket; `url` has the scheme `s3a` and no slash at its end."""

    url: str


@dataclass(frozen=True, slots=True)
class TopicAddress:
    """A topic and some of its cluster's brokers (`host:port,host:port`)."""

    brokers: str
    topic: str


Address = DirectoryAddress | ObjectAddress | TopicAddress


def parse_address(text: str) -> Address:
    """Read what `--input` says.

    Raises:
        UsageError: a scheme that is not known, or a part that is missing.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        return DirectoryAddress(Path(text))
    first, _, path = rest.partition("/")
    if "@" in first:
        raise UsageError(
            "an address never holds credentials: they come from the environment, from Spark's own settings "
            "(--spark-conf), or for Kafka from --kafka-config FILE"
        )
    match scheme:
        case "file" if first in ("", "localhost"):
            return DirectoryAddress(Path(f"/{unquote(path)}"))
        case "file":
            raise UsageError(f"--input {text} names the host {first}: file:///PATH is a directory here")
        case "s3a" | "s3" if first:
            return ObjectAddress(f"s3a://{first}/{path.strip('/')}".rstrip("/"))
        case "s3a" | "s3":
            raise UsageError(f"--input {text} names no bucket: s3a://bucket/prefix")
        case "kafka":
            brokers = parse_brokers("--input", first)
            if not _TOPIC.fullmatch(path):
                raise UsageError(
                    f"--input {text} names no topic (letters, digits, '.', '_', '-'): kafka://b1:9092/topic"
                )
            return TopicAddress(brokers, path)
    raise UsageError(f"--input {text}: {scheme}:// is not known; give {FORMS}")


def parse_bronze(option: str, text: str) -> str:
    """Read where bronze (or an audit's input) is: a directory, or `s3a://bucket/prefix`.

    Raises:
        UsageError: another kind of address.
    """
    address = parse_address(text)
    match address:
        case DirectoryAddress(path):
            return str(path)
        case ObjectAddress(url):
            return url
    raise UsageError(f"{option} must be a directory or s3a://bucket/prefix; a topic is an input of `ingest`")


def parse_brokers(option: str, text: str) -> str:
    """Check `host:port,host:port`.

    Raises:
        UsageError: it is something else.
    """
    if not all(_BROKER.fullmatch(broker) for broker in text.split(",")):
        raise UsageError(f"{option} {text}: brokers are host:port,host:port, as in b1:9092,b2:9092")
    return text


def refuse_address(option: str, path: Path) -> None:
    """Refuse an address where a directory is needed.

    Raises:
        UsageError: says what to do instead.
    """
    found = re.match(r"([a-z][a-z0-9+]+):/", str(path))
    if found:
        raise UsageError(
            f"{option} must be a directory, not {found[1]}://: what an audit writes is swapped in by renaming, which "
            f"object stores cannot do"
        )
