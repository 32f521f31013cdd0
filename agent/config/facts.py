"""Facts about applications, put together: flags, the settings file, the applications' own file, a label of the pod.

What cannot be used is added to `problems` where an operator gave it to the agent, and only noted where it is the
application's: an agent must start beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from agent.contract.names import nearest
from agent.inventory.properties import facts_of
from agent.inventory.settings import KEYS, KEYS_BY_ANY_NAME, KEYS_BY_NAME, Setting, SettingsBook
from agent.layout.java_properties import is_nested
from agent.layout.releases import remark_on

PROPERTIES = "properties"  # origin of facts that the application's own file says
_MOST_BYTES = 1 << 20  # as much as a ConfigMap holds: what is larger is no settings file

_OTHER_FORMATS = (".yml", ".yaml", ".json")
_NO_PROPERTIES = (
    "it is no .properties file. Of YAML and JSON only the application knows which part holds. Give the"
    " settings by name: --set processing.guarantee=exactly_once_v2 (in a pod: `facts` of the chart)"
)


def tables_of(
    table: object, where: str, problems: list[str]
) -> tuple[dict[str, Setting], dict[str, dict[str, Setting]]]:
    """Read `[application]` of the file: settings of all applications, and of single ones."""
    common: dict[str, Setting] = {}
    own: dict[str, dict[str, Setting]] = {}
    if not isinstance(table, Mapping):
        problems.append(f"{where}: [application] must be a table")
        return common, own
    for name, value in table.items():
        if not isinstance(value, Mapping):
            _add_setting(common, str(name), value, "file", f"{where}: [application]", problems)
            continue
        group = own.setdefault(str(name), {})
        for key, inner in value.items():
            _add_setting(group, str(key), inner, "file", f'{where}: [application."{name}"]', problems)
    return common, own


def add_flag(
    text: str, common: dict[str, Setting], own: dict[str, dict[str, Setting]], problems: list[str]
) -> None:
    """Add one `--set`."""
    left, equals, value = text.partition("=")
    if not equals:
        problems.append(f"--set {text}: expected KEY=VALUE or APPLICATION:KEY=VALUE")
        return
    application, colon, key = left.rpartition(":")
    group = own.setdefault(application, {}) if colon else common
    _add_setting(group, key, value, "flag", "--set", problems)


def add_properties(
    file: str,
    origin: str,
    common: dict[str, Setting],
    own: dict[str, dict[str, Setting]],
    problems: list[str],
) -> list[str]:
    """Add what only an application's own file says; give what of it cannot be used.

    A file that cannot be read, or has another format, is a problem only if a flag names it. In a pod an environment
    variable does, and the application waits for its agent: it must not wait for a file.
    """
    if not file:
        return []
    try:
        text = _text_of(file)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        if origin != "flag":
            return [f"{file}: {reason}"]
        problems.append(f"properties {file}: {reason}")
        return []
    given = facts_of(text)
    values = {name: Setting(value, PROPERTIES) for name, value in given.values.items() if name not in common}
    notes = [f"{file}: {note}" for note in given.notes]
    if not given.values and not given.notes:
        notes.append(f"{file}: has no setting that decides a verdict")
    if given.application_id is None:
        common.update(values)
    else:
        own[given.application_id] = {**values, **own.get(given.application_id, {})}
    return notes


def _text_of(file: str) -> str:
    with Path(file).open("rb") as opened:
        content = opened.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise OSError(f"it is larger than {_MOST_BYTES} bytes")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # what java.util.Properties reads of a stream
    if file.lower().endswith(_OTHER_FORMATS) or is_nested(text):
        raise OSError(_NO_PROPERTIES)
    return text


def add_release(text: str, origin: str, common: dict[str, Setting]) -> list[str]:
    """Add the release that the pod says its applications have, unless it is given for all of them."""
    name, release = "kafka_streams_version", text.strip()
    if not release or name in common:
        return []
    try:
        KEYS_BY_NAME[name].check(release)
    except ValueError as error:
        return [f"streams_version {release} is not used: {error}"]
    common[name] = Setting(release, origin)
    return []


def remarks_on_releases(book: SettingsBook) -> list[str]:
    """Say of each release that was given what it leaves open."""
    groups = (book.common, *book.own.values())
    given = {group["kafka_streams_version"].value for group in groups if "kafka_streams_version" in group}
    return [remark for text in sorted(given) if (remark := remark_on(text)) is not None]


def _add_setting(
    group: dict[str, Setting], name: str, value: object, origin: str, where: str, problems: list[str]
) -> None:
    key = KEYS_BY_ANY_NAME.get(name)
    if key is None:
        known = [x.name for x in KEYS]
        near = nearest(name, known)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
        problems.append(f"{where}: unknown setting {name!r}; {hint}")
        return
    text = str(value).strip()
    try:
        key.check(text)
    except ValueError as error:
        problems.append(f"{where}: {name}={text}: {error}")
        return
    group[key.name] = Setting(text, origin)
