"""Settings: precedence, problems, defaults."""

from __future__ import annotations

import re
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from agent.config import AgentSettings, DetectorSettings, load_config
from agent.delivery import DigestSettings, KubernetesSettings, ShipSettings
from agent.errors import ConfigError
from agent.inventory.settings import Setting


def test_the_defaults() -> None:
    """These are the defaults; changing one is a decision, not an accident."""
    config = load_config()
    assert asdict(config.agent) == {
        "state_dir": "", "pod": "", "namespace": "", "pod_uid": "", "node": "", "listen": ":9464", "spool": "",
        "home": "", "ship_to": "", "rescan_seconds": 60.0, "watch_mode": "auto", "cpu_share": 0.0,
        "memory_mib": 0.0, "grace_seconds": 10.0, "linger_seconds": 0.0, "log_level": "INFO", "runbooks": "",
        "cluster": "", "metrics_detail": "task", "properties": "", "streams_version": "",
    }  # fmt: skip
    assert set(config.origins.values()) == {"default"}
    assert asdict(config.ship) == {
        "endpoint": "", "region": "", "ca_file": "", "token_file": "", "credentials_dir": "", "kafka_config": "",
        "content_mode": "structured", "allow_http": False, "timeout_seconds": 10.0, "cap_mib": 64.0,
        "seal_kib": 256.0, "seal_seconds": 15.0,
    }  # fmt: skip
    assert asdict(config.kubernetes) == {
        "events": "off",
        "api": "",
        "service_account_dir": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    assert asdict(config.digest) == {"at": "off", "buckets": 4096, "cpu_share": 0.1}
    assert asdict(config.detectors) == {"disabled": {}}
    groups: dict[
        str, AgentSettings | DetectorSettings | ShipSettings | KubernetesSettings | DigestSettings
    ] = {
        "": config.agent, "detectors.": config.detectors, "ship.": config.ship, "kubernetes.": config.kubernetes,
        "digest.": config.digest,
    }  # fmt: skip
    names = {f"{prefix}{row.name}" for prefix, group in groups.items() for row in fields(group)}
    assert config.origins.keys() == names
    assert config.applications.of("any").values == {}


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    """Each source wins over those below it, and the origin says which one it was."""
    file = tmp_path / "settings.toml"
    file.write_text('[agent]\nspool = "file"\nship_to = "file"\nlog_level = "ERROR"\n')
    config = load_config(
        file=file,
        environment={"STATEWARDEN_SPOOL": "environment", "STATEWARDEN_SHIP_TO": "environment"},
        flags={"spool": "flag", "ship_to": None},
    )
    seen = {
        name: (getattr(config.agent, name), config.origins[name])
        for name in ("spool", "ship_to", "log_level")
    }
    assert seen == {
        "spool": ("flag", "flag"),
        "ship_to": ("environment", "environment"),
        "log_level": ("ERROR", "file"),
    }
    assert config.origins["listen"] == "default"


def test_an_empty_flag_is_a_value() -> None:
    """`--listen ''` switches the port off; it does not mean that nothing was said."""
    config = load_config(flags={"listen": ""})
    assert (config.agent.listen, config.origins["listen"]) == ("", "flag")


@pytest.mark.parametrize(
    ("name", "variable"),
    [("pod", "POD_NAME"), ("namespace", "POD_NAMESPACE"), ("pod_uid", "POD_UID"), ("node", "NODE_NAME")],
)
def test_the_downward_api_names(name: str, variable: str) -> None:
    """Kubernetes' usual names are read, an empty one is none, and the prefixed name wins over them."""
    assert getattr(load_config(environment={variable: "from-kubernetes"}).agent, name) == "from-kubernetes"
    assert load_config(environment={variable: ""}).origins[name] == "default"
    both = {variable: "from-kubernetes", f"STATEWARDEN_{name.upper()}": "own"}
    assert getattr(load_config(environment=both).agent, name) == "own"


def test_own_settings_beat_common_ones(tmp_path: Path) -> None:
    """An application's own value wins, from whichever source; its other keys stay common."""
    file = tmp_path / "settings.toml"
    file.write_text(
        '[application]\nprocessing_guarantee = "at_least_once"\ncommit_interval_ms = 100\n'
        '[application."orders:v1"]\nprocessing_guarantee = "exactly_once"\n'
    )
    book = load_config(
        file=file, sets=["commit_interval_ms=200", "orders:v1:num_standby_replicas=2"]
    ).applications
    assert book.of("orders:v1").values == {
        "processing_guarantee": Setting("exactly_once", "file"),
        "commit_interval_ms": Setting("200", "flag"),
        "num_standby_replicas": Setting("2", "flag"),
    }
    assert book.of("other").values == {
        "processing_guarantee": Setting("at_least_once", "file"),
        "commit_interval_ms": Setting("200", "flag"),
    }


def test_later_sets_win() -> None:
    """Of two `--set` of one key the last one holds."""
    book = load_config(sets=["num_standby_replicas=1", "num_standby_replicas=0"]).applications
    assert book.of("x").number("num_standby_replicas") == 0


def test_the_values_of_an_application() -> None:
    """Text, numbers, release and guarantee are read as what they are; what is absent is unknown."""
    sets = [
        "processing_guarantee=exactly_once_v2",
        "kafka_streams_version=4.1.2",
        "state_cleanup_dir_max_age_ms=-1",
    ]
    settings = load_config(sets=sets).applications.of("x")
    assert (settings.exactly_once, str(settings.release)) == (True, "4.1.2")
    assert settings.number("state_cleanup_dir_max_age_ms") == -1
    nothing = load_config().applications.of("x")
    assert (nothing.exactly_once, nothing.release, nothing.number("num_standby_replicas")) == (
        None,
        None,
        None,
    )
    assert load_config(sets=["processing_guarantee=at_least_once"]).applications.of("x").exactly_once is False


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[agent]\nspol = 'x'\n", "[agent]: unknown setting 'spol'; known: state_dir, pod, "),
        ("[aplication]\n", "unknown table [aplication]; expected [agent], [application]"),
        ("[application]\nstandbys = 1\n", "[application]: unknown setting 'standbys'; known: "),
        ("[application]\nnum_standby = 1\n", "'num_standby'; did you mean num_standby_replicas?"),
        ("[application.x]\nstandbys = 1\n", "[application.\"x\"]: unknown setting 'standbys'"),
        ("[application]\nprocessing_guarantee = 1\n", "processing_guarantee=1: must be one of at_least_once"),
        ("[application]\ncommit_interval_ms = true\n", "commit_interval_ms=True: must be a whole number"),
        ("application = 1\n", "[application] must be a table"),
        ("agent = 1\n", "[agent] must be a table"),
        ("[agent]\nrescan_seconds = 'often'\n", "rescan_seconds (file): 'often' is not a number"),
        ("[digest]\nat = 'noon'\n", "digest.at: 'noon' must be one of off, close"),
        ("[digest]\nbuckets = 4.5\n", "digest.buckets (file): 4.5 is not a whole number"),
        ("[digest]\nbuckets = 1000\n", "digest.buckets: 1000 must be a power of two from 1 to 16384"),
        ("[digest]\nbuckets = 32768\n", "digest.buckets: 32768 must be a power of two"),
        ("[digest]\ncpu_share = 0\n", "digest.cpu_share: 0 must be above 0 and at most 1"),
        ("[agent]\nrescan_seconds = 0\n", "rescan_seconds: 0.0 must be 1 or more"),
        ("[agent]\nwatch_mode = 'dnotify'\n", "watch_mode: 'dnotify' must be auto, inotify or poll"),
        ("[agent]\ncpu_share = -1\n", "cpu_share: -1.0 must be 0 (no ceiling) or more"),
        ("[agent]\nmemory_mib = nan\n", "memory_mib (file): nan is not a finite number"),
        ("[agent]\nrescan_seconds = nan\n", "rescan_seconds (file): nan is not a finite number"),
        ("[agent]\nlinger_seconds = inf\n", "linger_seconds (file): inf is not a finite number"),
        ("[ship]\nseal_seconds = nan\n", "ship.seal_seconds (file): nan is not a finite number"),
        ("[agent]\nlisten = '9464'\n", "listen: '9464' must be HOST:PORT or :PORT"),
        ("[agent]\nlisten = ':70000'\n", "listen: ':70000' must be HOST:PORT or :PORT"),
        ("[agent]\nlog_level = 'loud'\n", "log_level: 'loud' must be DEBUG, INFO, WARNING or ERROR"),
        ("[agent]\nlinger_seconds = -1\n", "linger_seconds: -1.0 must be 0 or more"),
        ("[agent\n", "not TOML: "),
        ("[ship]\nendpiont = 'x'\n", "[ship]: unknown setting 'endpiont'; known: endpoint, region, "),
        ("[ship]\nallow_http = 'yes'\n", "ship.allow_http (file): 'yes' is not true or false"),
        ("[ship]\ncap_mib = 0.5\n", "ship.cap_mib: 0.5 must hold at least eight segments of seal_kib 256"),
        ("[ship]\nseal_kib = 1\n", "ship.seal_kib: 1.0 must be 16 or more"),
        ("[ship]\nendpoint = 'minio:9000'\n", "ship.endpoint: 'minio:9000' must begin with https://"),
        ("[ship]\nendpoint = 'http://example.com'\n",
         "ship.endpoint: http:// is not encrypted; use https:// or set allow_http"),
        ("[ship]\ncontent_mode = 'avro'\n", "ship.content_mode: 'avro' must be one of structured, binary"),
        ("[kubernetes]\nevents = 'loud'\n",
         "kubernetes.events: 'loud' must be one of off, info, warning, critical"),
        ("[agent]\nship_to = 'ftp://x/y'\n",
         "ship_to: ftp:// is unknown; expected a directory or one of file, s3, "),
        ("[agent]\nship_to = 'kafka://b:9092'\n", "ship_to: expected kafka://BROKER,BROKER/TOPIC"),
        ("[agent]\nship_to = 's3://k:secret@b/p'\n", "ship_to: credentials do not belong into an address"),
        ("[agent]\nship_to = 'https://example.com/p?sig=x'\n", "ship_to: an address has no ? or #"),
        ("[agent]\nship_to = 'http://example.com/p'\n",
         "ship_to: http:// is not encrypted; use https:// or set allow_http"),
        ("[agent]\nship_to = 'http://example.com/p'\n[ship]\nallow_http = true\ntoken_file = 't'\n",
         "ship.token_file: a token is never sent unencrypted"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_reported(tmp_path: Path, content: str, words: str) -> None:
    """What is wrong in the file is named with where it stands and what is expected."""
    file = tmp_path / "settings.toml"
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_config(file=file)
    assert words in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file is an error, not an empty one."""
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read: No such file or directory"):
        load_config(file=tmp_path / "none.toml")


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are not TOML."""
    file = tmp_path / "settings.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(file=file)


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    """File, flags, environment and sets are all looked at before anything is said, in one line."""
    file = tmp_path / "settings.toml"
    file.write_text("[agent]\nspol = 'x'\n[application]\nupgrade_from = 'old'\n")
    with pytest.raises(ConfigError) as caught:
        load_config(
            file=file,
            sets=["x=1", "y"],
            flags={"log_level": "loud"},
            environment={"STATEWARDEN_GRACE_SECONDS": "long"},
        )
    message = str(caught.value)
    for words in ("'spol'", "upgrade_from=old", "unknown setting 'x'", "--set y", "'loud'", "grace_seconds"):
        assert words in message
    assert message.count("; ") >= 5
    assert "\n" not in message


def test_other_groups_come_from_file_and_environment(tmp_path: Path) -> None:
    """`[ship]` and its like have environment names with the group in them; a pod is told where its API server is."""
    file = tmp_path / "settings.toml"
    file.write_text("[ship]\nallow_http = true\nseal_seconds = 5\n")
    config = load_config(
        file=file,
        environment={
            "STATEWARDEN_SHIP_SEAL_SECONDS": "2.5",
            "KUBERNETES_SERVICE_HOST": "fd00::1",
            "KUBERNETES_SERVICE_PORT": "6443",
        },
    )
    assert (config.ship.allow_http, config.ship.seal_seconds) == (True, 2.5)
    assert config.kubernetes.api == "https://" + "[fd00::1]:6443"
    names = ("ship.allow_http", "ship.seal_seconds", "ship.region", "kubernetes.api")
    assert [config.origins[name] for name in names] == ["file", "environment", "default", "environment"]


# -- disabled detectors -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '[detectors.disabled]\nzombie-state = "by design"\ntorn-store = "known = old"\n',
        '[detectors]\ndisabled = ["zombie-state=by design", "torn-store=known = old"]\n',
        '[detectors]\ndisabled = "zombie-state=by design; torn-store = known = old;"\n',
    ],
)
def test_disabled_detectors_of_a_file(tmp_path: Path, text: str) -> None:
    """A table, a list, or what the environment takes: the reason is all behind the first equals sign."""
    file = tmp_path / "agent.toml"
    file.write_text(text)
    config = load_config(file=file, detectors=("torn-store", "zombie-state"))
    assert config.detectors.disabled == {"zombie-state": "by design", "torn-store": "known = old"}
    assert config.disabled["torn-store"] == Setting("known = old", "file")
    assert str(config.detectors.disabled) == "zombie-state=by design; torn-store=known = old"


def test_who_says_last_which_detectors_are_disabled(tmp_path: Path) -> None:
    """Flag before environment before file, as a whole; an empty variable enables all."""
    file = tmp_path / "agent.toml"
    file.write_text('[detectors.disabled]\na = "1"\n')
    variable = {"STATEWARDEN_DETECTORS_DISABLED": "b=2"}
    flags = {"detectors.disabled": ["c=3"]}
    assert load_config(file=file, environment=variable, flags=flags).disabled == {"c": Setting("3", "flag")}
    assert load_config(file=file, environment=variable).disabled == {"b": Setting("2", "environment")}
    assert load_config(file=file, environment={"STATEWARDEN_DETECTORS_DISABLED": ""}).disabled == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["zombie-state"], "no reason for zombie-state"),
        (["zombie-state= ", "torn-store"], "no reason for zombie-state, torn-store"),
        (
            ["zombie=old", "torn-store=old", "x=y"],
            "no detector is called zombie, x; known: torn-store, zombie-state",
        ),
        (["torn-store=" + "x" * 201], "more than 200 characters for torn-store"),
    ],
)
def test_disabled_detectors_that_are_mistakes(given: list[str], message: str) -> None:
    """No reason, or no such detector: the ids are named, and nothing starts."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_config(flags={"detectors.disabled": given}, detectors=("torn-store", "zombie-state"))


def test_what_is_accepted_is_known_to_last() -> None:
    """A detector whose exposures cannot be accepted is refused; accepted ones are read for one application."""
    both = ["stale-eos-checkpoint", "torn"]
    config = load_config(sets=["orders:accepts=stale-eos-checkpoint, torn"], acceptable=both)
    assert config.applications.of("orders").accepts == set(both)
    assert config.applications.of("payments").accepts == frozenset()
    with pytest.raises(
        ConfigError, match="accepts: no lasting exposure of torn; known: stale-eos-checkpoint"
    ):
        load_config(sets=["orders:accepts=torn"], acceptable=["stale-eos-checkpoint"])
    with pytest.raises(ConfigError, match="separated by commas"):
        load_config(sets=["accepts=a,,b"])
