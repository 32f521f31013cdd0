"""Settings of the agent and of the applications: file, environment, flags. Every problem in one message.

Order of precedence: flag, environment (`STATEWARDEN_<NAME>`), file, default; what an application's own file and its
pod's label say comes last. The only module that reads the
environment. Values only: nothing is opened but the settings file and the applications' properties.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TypeVar

from agent import __version__
from agent.config.facts import add_flag, add_properties, add_release, remarks_on_releases, tables_of
from agent.contract.events import Origin
from agent.contract.reporting import ACCEPTS
from agent.delivery import DigestSettings, KubernetesSettings, ShipSettings, problems_of, problems_of_digest
from agent.errors import ConfigError
from agent.inventory.settings import DEFAULT, Setting, SettingsBook

ENVIRONMENT_PREFIX = "STATEWARDEN_"
DOWNWARD = {"pod": "POD_NAME", "namespace": "POD_NAMESPACE", "pod_uid": "POD_UID", "node": "NODE_NAME"}
"""Names that Kubernetes' downward API usually gives; read where the prefixed name is not set."""
MAX_REASON = 200  # characters of a reason: it is a label of a metric

_G = TypeVar("_G", "AgentSettings", "DetectorSettings", ShipSettings, KubernetesSettings, DigestSettings)


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of the agent itself, group `[agent]` of the file."""

    state_dir: str = ""  # state directory to audit (Kafka's `state.dir`)
    pod: str = ""  # pod name; default: host name
    namespace: str = ""  # namespace; default: empty
    cluster: str = ""  # name of the cluster or region, where several ship to one place; default: empty
    pod_uid: str = ""  # pod uid; default: the pod name
    node: str = ""  # node name; default: empty
    listen: str = ":9464"  # address of /metrics, `HOST:PORT`; empty = do not serve
    spool: str = ""  # directory on the agent's own volume; empty = events are only logged
    home: str = ""  # directory on the agent's own volume for baseline and canary; default: the spool's
    ship_to: str = ""
    """Where sealed segments are shipped to: a directory, or a URL with s3, gs, az, kafka or https; empty = they stay
    in the spool."""
    rescan_seconds: float = 60.0  # least distance between two rounds of the walk that reads everything again
    watch_mode: str = "auto"
    """`auto`, `inotify` or `poll`: whether to watch or to poll; `auto` asks the volume."""
    cpu_share: float = 0.0
    """Ceiling of the agent's CPU as a share of one core, from which it does less; 0 = none."""
    memory_mib: float = 0.0  # ceiling of the agent's resident memory, from which it does less; 0 = none
    grace_seconds: float = 10.0  # how long the last flush may take
    linger_seconds: float = 0.0
    """How long to watch on after SIGTERM while an application still holds its locks, or digests of stores are to be
    made."""
    log_level: str = "INFO"  # DEBUG, INFO, WARNING or ERROR
    runbooks: str = ""
    """Base of the links to runbooks on the agent's page; empty = those that the agent serves."""
    metrics_detail: str = "task"  # `task`, or `store` for series of single stores as well
    properties: str = ""
    """`.properties` file of the application, whose settings are facts where nothing else gives them."""
    streams_version: str = ""
    """Release of Kafka Streams of all applications here, where nothing else gives it; what is no release is noted
    and not used, because it may come from a label of the pod."""

    def origin(self, boot_id: str, pod: str = "") -> Origin:
        """Say who speaks: the identity of this pod's agent, or of `pod`'s, from one start on."""
        pod = pod or self.pod
        return Origin(self.pod_uid or pod, boot_id, pod, self.namespace, self.node, __version__, self.cluster)


class Reasons(dict[str, str]):
    """Detector id -> why it is disabled; as text, what the environment takes."""

    def __str__(self) -> str:
        """Write `ID=REASON`, separated by semicolons."""
        return "; ".join(f"{id_}={reason}" for id_, reason in self.items())


@dataclass(frozen=True, slots=True)
class DetectorSettings:
    """Settings of the detectors, group `[detectors]` of the file."""

    disabled: Reasons = field(default_factory=Reasons)  # detectors that open no finding, each with its reason


@dataclass(frozen=True, slots=True)
class Config:
    """Everything effective, with origins."""

    agent: AgentSettings  # the agent's own settings
    origins: Mapping[str, str]
    """Setting (of groups other than `[agent]`: `group.setting`) -> flag, environment, file or default."""
    applications: SettingsBook  # what the operator said of the applications
    detectors: DetectorSettings = field(default_factory=DetectorSettings)  # which are disabled
    ship: ShipSettings = field(default_factory=ShipSettings)  # spool and sink
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    """What is reported to Kubernetes."""
    digest: DigestSettings = field(default_factory=DigestSettings)  # when digests of stores are made
    notes: tuple[str, ...] = ()
    """What of the applications' own files and labels could not be used, one sentence each."""

    @property
    def disabled(self) -> Mapping[str, Setting]:
        """Detector id -> why it is disabled, and where that was given."""
        origin = self.origins.get("detectors.disabled", DEFAULT)
        return {id_: Setting(reason, origin) for id_, reason in self.detectors.disabled.items()}


def load_config(
    *,
    file: Path | None = None,
    sets: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    detectors: Collection[str] | None = None,
    acceptable: Collection[str] | None = None,
) -> Config:
    """Join file, environment and flags.

    `file`: TOML file; None = none. `sets`: `KEY=VALUE` or `APPLICATION:KEY=VALUE`, in order; later ones win.
    `flags`: settings given as flags, by their full name; None values are not given. `detectors`: ids that may be
    disabled; None = any. `acceptable`: ids whose exposures may be accepted; None = any. Gives effective settings
    with the origin of each. Raises `ConfigError`: lists every problem: unreadable file, unknown key, bad value.
    """
    problems: list[str] = []
    document = _read(file, problems) if file is not None else {}
    common, own = tables_of(document.get("application", {}), str(file), problems)
    for text in sets:
        add_flag(text, common, own, problems)
    read = _Reader(document, environment or {}, flags or {}, str(file), problems)
    agent = read.group("agent", AgentSettings)
    notes = add_properties(agent.properties, read.origins["properties"], common, own, problems)
    notes += add_release(agent.streams_version, read.origins["streams_version"], common)
    judges = read.group("detectors", DetectorSettings)
    strange = [id_ for id_ in judges.disabled if detectors is not None and id_ not in detectors]
    if strange:
        problems.append(
            f"detectors.disabled ({read.origins['detectors.disabled']}): no detector is called {', '.join(strange)};"
            f" known: {', '.join(detectors or ())}"
        )
    book = SettingsBook(common, own)
    odd = [] if acceptable is None else sorted(book.accepted() - set(acceptable))
    if odd:
        problems.append(
            f"{ACCEPTS}: no lasting exposure of {', '.join(odd)}; known: {', '.join(acceptable or ())}"
        )
    ship = read.group("ship", ShipSettings)
    kubernetes = read.group("kubernetes", KubernetesSettings)
    digest = read.group("digest", DigestSettings)
    if not kubernetes.api and environment and environment.get("KUBERNETES_SERVICE_HOST"):
        host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
        host = f"[{host}]" if ":" in host else host
        kubernetes = replace(kubernetes, api=f"https://{host}:{port}")
        read.origins["kubernetes.api"] = "environment"
    _check(agent, problems)
    problems += problems_of(agent.ship_to, ship, kubernetes)
    problems += problems_of_digest(digest)
    problems += [
        f'{file}: unknown table [{name}]; expected [agent], [application], [application."ID"], [detectors], [ship], '
        "[kubernetes] or [digest]"
        for name in document
        if name not in ("application", "agent", "detectors", "ship", "kubernetes", "digest")
    ]
    if problems:
        raise ConfigError("; ".join(problems))
    notes += remarks_on_releases(book)
    return Config(agent, read.origins, book, judges, ship, kubernetes, digest, tuple(notes))


def _read(file: Path, problems: list[str]) -> Mapping[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror or error}")
    except ValueError as error:
        problems.append(f"{file}: not TOML: {error}")
    return {}


class _Reader:
    """Reads one group of settings after the other from file, environment and flags."""

    def __init__(
        self,
        document: Mapping[str, object],
        environment: Mapping[str, str],
        flags: Mapping[str, object],
        where: str,
        problems: list[str],
    ) -> None:
        self._document, self._environment, self._flags = document, environment, flags
        self._where, self._problems = where, problems
        self.origins: dict[str, str] = {}

    def group(self, label: str, kind: type[_G]) -> _G:
        """Read one group; what is wrong is added to the problems and left at its default."""
        table = self._document.get(label, {})
        known = {row.name: row for row in fields(kind)}
        if not isinstance(table, Mapping):
            self._problems.append(f"{self._where}: [{label}] must be a table")
            table = {}
        self._problems += [
            f"{self._where}: [{label}]: unknown setting {name!r}; known: {', '.join(known)}"
            for name in table
            if name not in known
        ]
        is_agent = label == "agent"
        given: dict[str, object] = {}
        for name, row in known.items():
            full = name if is_agent else f"{label}.{name}"
            self.origins[full] = "default"
            variable = ENVIRONMENT_PREFIX + full.upper().replace(".", "_")
            candidates = (
                ("file", table.get(name)),
                ("environment", self._environment.get(DOWNWARD.get(name, "")) or None if is_agent else None),
                ("environment", self._environment.get(variable)),
                ("flag", self._flags.get(full)),
            )
            for origin, value in candidates:
                if value is None:
                    continue
                try:
                    given[name] = (
                        _reasons(value) if row.type == "Reasons" else _READERS[str(row.type)](str(value))
                    )
                    self.origins[full] = origin
                except ValueError as error:
                    self._problems.append(f"{full} ({origin}): {value!r} is not {error}")
        return kind(**given)  # type: ignore[arg-type]


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("a number") from None
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("true or false")
    return text.lower() == "true"


def _reasons(given: object) -> Reasons:
    """Read disabled detectors: a table of the file, a list of `ID=REASON`, or such texts separated by semicolons."""
    if isinstance(given, Mapping):
        pairs = [(str(id_), reason if isinstance(reason, str) else "") for id_, reason in given.items()]
    else:
        texts = given if isinstance(given, list) else str(given).split(";")
        pairs = [
            (id_, reason)
            for id_, _, reason in (str(text).partition("=") for text in texts if str(text).strip())
        ]
    reasons = Reasons((id_.strip(), " ".join(reason.split())) for id_, reason in pairs)
    without = [id_ for id_, reason in reasons.items() if not reason]
    if without:
        raise ValueError(f"a list of ID=REASON: no reason for {', '.join(without)}")
    long = [id_ for id_, reason in reasons.items() if len(reason) > MAX_REASON]
    if long:
        raise ValueError(f"a list of ID=REASON: more than {MAX_REASON} characters for {', '.join(long)}")
    return reasons


_READERS: Mapping[str, Callable[[str], object]] = {
    "str": str,
    "float": _number,
    "int": _whole,
    "bool": _truth,
}


def _check(settings: AgentSettings, problems: list[str]) -> None:
    if settings.log_level.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        problems.append(f"log_level: {settings.log_level!r} must be DEBUG, INFO, WARNING or ERROR")
    if settings.watch_mode not in ("auto", "inotify", "poll"):
        problems.append(f"watch_mode: {settings.watch_mode!r} must be auto, inotify or poll")
    problems += [
        f"{name}: {value} must be 0 (no ceiling) or more"
        for name, value in (("cpu_share", settings.cpu_share), ("memory_mib", settings.memory_mib))
        if not value >= 0
    ]
    if settings.metrics_detail not in ("task", "store"):
        problems.append(f"metrics_detail: {settings.metrics_detail!r} must be task or store")
    if settings.rescan_seconds < 1:
        problems.append(f"rescan_seconds: {settings.rescan_seconds} must be 1 or more")
    problems += [
        f"{name}: {getattr(settings, name)} must be 0 or more"
        for name in ("grace_seconds", "linger_seconds")
        if getattr(settings, name) < 0
    ]
    if settings.listen and not _port_of(settings.listen):
        problems.append(f"listen: {settings.listen!r} must be HOST:PORT or :PORT")


def _port_of(listen: str) -> bool:
    port = listen.rpartition(":")[2]
    return ":" in listen and port.isdecimal() and int(port) <= 65_535
