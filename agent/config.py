"""Settings of the agent and of the applications: file, environment, flags. Every problem in one message.

Order of precedence: flag, environment (`STATEWARDEN_<NAME>`), file, default. The only module that reads the
environment. Values only: nothing is opened but the settings file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from agent.errors import ConfigError
from agent.inventory.settings import KEYS, KEYS_BY_NAME, Setting, SettingsBook

ENVIRONMENT_PREFIX = "STATEWARDEN_"
DOWNWARD = {"pod": "POD_NAME", "namespace": "POD_NAMESPACE", "pod_uid": "POD_UID", "node": "NODE_NAME"}
"""Names that Kubernetes' downward API usually gives; read where the prefixed name is not set."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of the agent itself, group `[agent]` of the file.

    Args of the dataclass:
        state_dir: State directory to audit (Kafka's `state.dir`).
        pod: Pod name; default: host name.
        namespace: Namespace; default: empty.
        pod_uid: Pod uid; default: the pod name.
        node: Node name; default: empty.
        listen: Address of /metrics, `HOST:PORT`; empty = do not serve.
        spool: Directory on the agent's own volume; empty = events are only logged.
        ship_to: Directory that sealed segments are shipped to; empty = they stay in the spool.
        rescan_seconds: Distance between full rescans.
        grace_seconds: How long the last flush may take.
        log_level: DEBUG, INFO, WARNING or ERROR.
    """

    state_dir: str = ""
    pod: str = ""
    namespace: str = ""
    pod_uid: str = ""
    node: str = ""
    listen: str = ":9464"
    spool: str = ""
    ship_to: str = ""
    rescan_seconds: float = 60.0
    grace_seconds: float = 10.0
    log_level: str = "INFO"


@dataclass(frozen=True, slots=True)
class Config:
    """Everything effective, with origins.

    Args of the dataclass:
        agent: The agent's own settings.
        origins: Name of an agent setting -> flag, environment, file or default.
        applications: What the operator said of the applications.
    """

    agent: AgentSettings
    origins: Mapping[str, str]
    applications: SettingsBook


def load_config(
    *,
    file: Path | None = None,
    sets: Sequence[str] = (),
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Join file, environment and flags.

    Args:
        file: TOML file; None = none.
        sets: `KEY=VALUE` or `APPLICATION:KEY=VALUE`, in order; later ones win.
        flags: Agent settings given as flags; None values are not given.
        environment: Environment variables.

    Returns:
        Effective settings with the origin of each.

    Raises:
        ConfigError: lists every problem: unreadable file, unknown key, bad value.
    """
    problems: list[str] = []
    document = _read(file, problems) if file is not None else {}
    common, own = _applications(document.get("application", {}), str(file), problems)
    for text in sets:
        _take_set(text, common, own, problems)
    agent, origins = _agent(document.get("agent", {}), flags or {}, environment or {}, str(file), problems)
    problems += [
        f'{file}: unknown table [{name}]; expected [agent], [application] or [application."ID"]'
        for name in document
        if name not in ("application", "agent")
    ]
    if problems:
        raise ConfigError("; ".join(problems))
    return Config(agent, origins, SettingsBook(common, own))


def _read(file: Path, problems: list[str]) -> Mapping[str, object]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror or error}")
    except ValueError as error:
        problems.append(f"{file}: not TOML: {error}")
    return {}


def _applications(
    table: object, where: str, problems: list[str]
) -> tuple[dict[str, Setting], dict[str, dict[str, Setting]]]:
    common: dict[str, Setting] = {}
    own: dict[str, dict[str, Setting]] = {}
    if not isinstance(table, Mapping):
        problems.append(f"{where}: [application] must be a table")
        return common, own
    for name, value in table.items():
        if not isinstance(value, Mapping):
            _take(common, str(name), value, "file", f"{where}: [application]", problems)
            continue
        group = own.setdefault(str(name), {})
        for key, inner in value.items():
            _take(group, str(key), inner, "file", f'{where}: [application."{name}"]', problems)
    return common, own


def _take_set(
    text: str, common: dict[str, Setting], own: dict[str, dict[str, Setting]], problems: list[str]
) -> None:
    left, equals, value = text.partition("=")
    if not equals:
        problems.append(f"--set {text}: expected KEY=VALUE or APPLICATION:KEY=VALUE")
        return
    application, colon, key = left.rpartition(":")
    group = own.setdefault(application, {}) if colon else common
    _take(group, key, value, "flag", "--set", problems)


def _take(
    group: dict[str, Setting], name: str, value: object, origin: str, where: str, problems: list[str]
) -> None:
    key = KEYS_BY_NAME.get(name)
    if key is None:
        known = ", ".join(x.name for x in KEYS)
        problems.append(f"{where}: unknown setting {name!r}; known: {known}")
        return
    text = str(value).strip()
    try:
        key.check(text)
    except ValueError as error:
        problems.append(f"{where}: {name}={text}: {error}")
        return
    group[name] = Setting(text, origin)


def _agent(
    table: object,
    flags: Mapping[str, object],
    environment: Mapping[str, str],
    where: str,
    problems: list[str],
) -> tuple[AgentSettings, dict[str, str]]:
    given: dict[str, object] = {}
    origins: dict[str, str] = {}
    known = {field.name: field for field in fields(AgentSettings)}
    if not isinstance(table, Mapping):
        problems.append(f"{where}: [agent] must be a table")
        table = {}
    problems += [
        f"{where}: [agent]: unknown setting {name!r}; known: {', '.join(known)}"
        for name in table
        if name not in known
    ]
    for name, field in known.items():
        origins[name] = "default"
        candidates = (
            ("file", table.get(name)),
            ("environment", environment.get(DOWNWARD.get(name, "")) or None),
            ("environment", environment.get(ENVIRONMENT_PREFIX + name.upper())),
            ("flag", flags.get(name)),
        )
        for origin, value in candidates:
            if value is None:
                continue
            try:
                given[name] = float(str(value)) if field.type == "float" else str(value)
                origins[name] = origin
            except ValueError:
                problems.append(f"{name} ({origin}): {value!r} is not a number")
    settings = AgentSettings(**given)  # type: ignore[arg-type]
    if settings.log_level.upper() not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        problems.append(f"log_level: {settings.log_level!r} must be DEBUG, INFO, WARNING or ERROR")
    if settings.rescan_seconds < 1:
        problems.append(f"rescan_seconds: {settings.rescan_seconds} must be 1 or more")
    if settings.listen and not _port_of(settings.listen):
        problems.append(f"listen: {settings.listen!r} must be HOST:PORT or :PORT")
    return settings, origins


def _port_of(listen: str) -> bool:
    port = listen.rpartition(":")[2]
    return ":" in listen and port.isdecimal() and int(port) <= 65_535
