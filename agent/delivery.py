"""Settings of what leaves the pod: where events go, what Kubernetes gets. Values and checks only.

Secrets are never settings: they lie in files that settings name, or come from the provider's own chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from agent.contract.buckets import BUCKETS, MAX_ROWS
from agent.contract.events import Severity


@dataclass(frozen=True, slots=True)
class SinkKind:
    """A kind of place that events can go to.

    Args of the dataclass:
        module: Below `agent.ship.sinks`, loaded when it is chosen; its `make` makes the sink.
        form: How `ship_to` names such a place, for people.
        schemes: Of its URLs.
        ports: Scheme -> port, where the address names the servers themselves: preflight tries to reach them.
        encrypted: Scheme without encryption, which has to be allowed -> the one with it.
        has_topic: The path is one name, and must be there.
        library: What the module imports beside the standard library.
        extra: Of the distribution, with that library.
    """

    module: str
    form: str
    schemes: tuple[str, ...]
    ports: Mapping[str, int] = field(default_factory=dict)
    encrypted: Mapping[str, str] = field(default_factory=dict)
    has_topic: bool = False
    library: str = ""
    extra: str = ""


DIRECTORY = SinkKind("directory", "/PATH", ("file",))
OBJECT_STORE = SinkKind(
    "object_store",
    "s3://BUCKET/PREFIX",
    ("s3", "s3a", "gs", "az", "abfs", "abfss"),
    library="obstore",
    extra="objectstore",
)
KAFKA = SinkKind(
    "kafka",
    "kafka://BROKER,BROKER/TOPIC",
    ("kafka",),
    ports={"kafka": 9092},
    has_topic=True,
    library="confluent_kafka",
    extra="kafka",
)
HTTP = SinkKind(
    "http",
    "https://example.com/PATH",
    ("http", "https"),
    ports={"http": 80, "https": 443},
    encrypted={"http": "https"},
)

KINDS = (DIRECTORY, OBJECT_STORE, KAFKA, HTTP)
SCHEMES = {scheme: kind for kind in KINDS for scheme in kind.schemes}

CONTENT_MODES = ("structured", "binary")
DIGEST_TIMES = ("off", "close")
EVENT_LEVELS = ("off", *(severity.value for severity in Severity))


@dataclass(frozen=True, slots=True)
class Target:
    """Where sealed segments go.

    Args of the dataclass:
        kind: Kind of place.
        url: As written, without the scheme for a directory; `s3a` is written `s3`.
        place: Host part: bucket, brokers, or collector.
        name: Path part without slashes at its ends: prefix or topic.
    """

    kind: SinkKind
    url: str
    place: str
    name: str


@dataclass(frozen=True, slots=True)
class ShipSettings:
    """Settings of spool and sink, group `[ship]` of the file.

    Args of the dataclass:
        endpoint: Object store: address of a service that is not the provider's own.
        region: Object store: region, for S3.
        ca_file: PEM file with the certificates to trust instead of the system's.
        token_file: HTTP: file with a bearer token; read again for each request.
        credentials_dir: Folder with one file per option (as a mounted Secret is), named as obstore or librdkafka
            names the option: `access_key_id`, `sasl.password`, ...
        kafka_config: Kafka: properties file with more librdkafka settings.
        content_mode: Kafka: how CloudEvents travel, `structured` or `binary`.
        allow_http: Whether an unencrypted endpoint or collector may be used.
        timeout_seconds: How long one request may take.
        cap_mib: Size of the spool, in MiB: everything that it has on disk.
        seal_kib: Size from which a segment is sealed, in KiB.
        seal_seconds: Age from which a segment is sealed.
    """

    endpoint: str = ""
    region: str = ""
    ca_file: str = ""
    token_file: str = ""
    credentials_dir: str = ""
    kafka_config: str = ""
    content_mode: str = "structured"
    allow_http: bool = False
    timeout_seconds: float = 10.0
    cap_mib: float = 64.0
    seal_kib: float = 256.0
    seal_seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """What is reported to Kubernetes, group `[kubernetes]` of the file.

    Args of the dataclass:
        events: Findings from this severity on become Events on the pod: off, info, warning or critical.
        api: Address of the API server; default: the one that Kubernetes gives every pod.
        service_account_dir: Folder with `token` and `ca.crt`.
    """

    events: str = "off"
    api: str = ""
    service_account_dir: str = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class DigestSettings:
    """When the agent makes digests of stores, group `[digest]` of the file.

    Args of the dataclass:
        at: `close`: when a store was closed in order; or `off`. Needs the extra `verify`, and a spool.
        buckets: Buckets of each database, a power of two; fewer where a store has many segments.
        cpu_share: Share of one core that making them may take, above 0; 1 = all of it.
    """

    at: str = "off"
    buckets: int = BUCKETS
    cpu_share: float = 0.1


def parse_target(text: str) -> Target:
    """Read `ship_to`: a directory, or a URL.

    Raises:
        ValueError: says what is wrong with it.
    """
    if "://" not in text:
        return Target(DIRECTORY, text, "", text)
    url = urlsplit(text)
    kind = SCHEMES.get(url.scheme)
    name = url.path.strip("/")
    if kind is None:
        raise ValueError(f"{url.scheme}:// is unknown; expected a directory or one of {', '.join(SCHEMES)}")
    if "@" in url.netloc and not url.scheme.startswith("abfs"):
        raise ValueError("credentials do not belong into an address; put them into files (credentials_dir)")
    if url.query or url.fragment:
        raise ValueError("an address has no ? or #")
    if kind is DIRECTORY:
        if url.netloc:
            raise ValueError(f"file://{url.netloc} names a host; write file:///path")
        return Target(kind, url.path, "", name)
    if not url.netloc or (kind.has_topic and (not name or "/" in name)):
        raise ValueError(f"expected {kind.form}")
    return Target(kind, text.replace("s3a://", "s3://", 1) if url.scheme == "s3a" else text, url.netloc, name)


def problems_of(ship_to: str, ship: ShipSettings, kubernetes: KubernetesSettings) -> Iterator[str]:
    """List what is wrong with the settings, one sentence each."""
    if ship_to:
        try:
            yield from _problems_of_target(parse_target(ship_to), ship)
        except ValueError as error:
            yield f"ship_to: {error}"
    if ship.endpoint and not ship.endpoint.startswith(("http://", "https://")):
        yield f"ship.endpoint: {ship.endpoint!r} must begin with https:// (with allow_http also http://)"
    if ship.endpoint.startswith("http://") and not ship.allow_http:
        yield "ship.endpoint: http:// is not encrypted; use https:// or set allow_http"
    if ship.content_mode not in CONTENT_MODES:
        yield f"ship.content_mode: {ship.content_mode!r} must be one of {', '.join(CONTENT_MODES)}"
    if kubernetes.events not in EVENT_LEVELS:
        yield f"kubernetes.events: {kubernetes.events!r} must be one of {', '.join(EVENT_LEVELS)}"
    for name, least in (
        ("timeout_seconds", 0.1),
        ("seal_seconds", 0.1),
        ("seal_kib", 16.0),
        ("cap_mib", 1.0),
    ):
        if getattr(ship, name) < least:
            yield f"ship.{name}: {getattr(ship, name)} must be {least:g} or more"
    if ship.cap_mib * 1024 < 8 * ship.seal_kib:
        yield f"ship.cap_mib: {ship.cap_mib} must hold at least eight segments of seal_kib {ship.seal_kib:g}"


def problems_of_digest(digest: DigestSettings) -> Iterator[str]:
    """List what is wrong with the settings of digests, one sentence each."""
    if digest.at not in DIGEST_TIMES:
        yield f"digest.at: {digest.at!r} must be one of {', '.join(DIGEST_TIMES)}"
    if not 0 < digest.buckets <= MAX_ROWS or digest.buckets & (digest.buckets - 1):
        yield f"digest.buckets: {digest.buckets} must be a power of two from 1 to {MAX_ROWS}"
    if not 0 < digest.cpu_share <= 1:
        yield f"digest.cpu_share: {digest.cpu_share:g} must be above 0 and at most 1"


def _problems_of_target(target: Target, ship: ShipSettings) -> Iterator[str]:
    scheme = target.url.partition("://")[0]
    encrypted = target.kind.encrypted.get(scheme)
    if encrypted is None:
        return
    if ship.token_file:
        yield f"ship.token_file: a token is never sent unencrypted; use {encrypted}:// in ship_to"
    elif not ship.allow_http:
        yield f"ship_to: {scheme}:// is not encrypted; use {encrypted}:// or set allow_http in [ship]"
