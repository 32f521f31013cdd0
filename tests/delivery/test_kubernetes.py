"""Kubernetes Events against a small API server over HTTPS that keeps objects and checks tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agent.config import load_config
from agent.contract.events import Origin
from agent.delivery import KubernetesSettings
from agent.errors import ConfigError
from agent.process.supervisor import Supervisor
from agent.publish.kubernetes import KubernetesEvents
from tests.agent.publish.test_kubernetes import AT_US, finding
from tests.delivery.servers import Certificates
from tests.support.answering import Answer, Request, answering

pytestmark = pytest.mark.delivery
ORIGIN = Origin("uid-1", "boot", "orders-0", namespace="shop")


@dataclass
class ApiServer:
    """Keeps Events, as the real one does: what is there cannot be created again."""

    url: str = ""
    token: str = "token-1"
    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    def answer(self, method: str, path: str, headers: dict[str, str], body: dict[str, Any]) -> int:
        self.requests.append(f"{method} {path}")
        if headers.get("Authorization") != f"Bearer {self.token}":
            return 401
        if self.answers:
            return self.answers.pop(0)
        assert (method, path) == ("POST", "/api/v1/namespaces/shop/events")
        assert headers["Content-Type"] == "application/json"
        if body["metadata"]["name"] in self.events:
            return 409
        self.events[body["metadata"]["name"]] = body
        return 201


@pytest.fixture
def api(certificates: Certificates) -> Iterator[ApiServer]:
    """Give a running API server."""
    found = ApiServer()

    def take(request: Request) -> Answer:
        body = json.loads(request.body)
        return found.answer(request.method, request.path, request.headers, body), {}, b""

    with answering(take, certificates.certificate, certificates.key) as found.url:
        yield found


@pytest.fixture
def account(tmp_path: Path, certificates: Certificates) -> Path:
    """Give a mounted service account."""
    (tmp_path / "account").mkdir()
    (tmp_path / "account" / "token").write_text("token-1\n")
    (tmp_path / "account" / "namespace").write_text("shop")
    (tmp_path / "account" / "ca.crt").write_bytes(certificates.certificate.read_bytes())
    return tmp_path / "account"


@pytest.fixture
def sender(api: ApiServer, account: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubernetesEvents]:
    """Give a sender that turns quickly."""
    monkeypatch.setattr("agent.publish.kubernetes.TURN_S", 0.01)
    settings = KubernetesSettings(events="warning", api=api.url, service_account_dir=str(account))
    made = KubernetesEvents(settings, ORIGIN)
    made.start()
    yield made
    made.stop(5)


def test_a_finding_has_an_event_for_each_change(
    api: ApiServer, sender: KubernetesEvents, eventually: Callable[..., object]
) -> None:
    """Opened, louder and resolved: each says it by an Event of its own, in order."""
    for number, more in enumerate(({}, {}, {"severity": "critical"}, {"status": "resolved"})):
        sender.offer(replace(finding(**more), observed_at_us=AT_US + number))
    eventually(lambda: sender.outcomes["sent"] == 3)
    told = [
        (x["count"], x["involvedObject"]["name"], x["message"].split("]")[0]) for x in api.events.values()
    ]
    assert told == [
        (1, "orders-0", "[warning, suspected"), (1, "orders-0", "[critical, suspected"), (1, "orders-0", "[resolved"),
    ]  # fmt: skip


def test_an_event_that_is_there_was_sent(
    api: ApiServer, sender: KubernetesEvents, eventually: Callable[..., object]
) -> None:
    """The answer to an earlier attempt was lost: the conflict settles it, and nothing is refused."""
    api.events[f"orders-0.f1.{AT_US:x}"] = {}
    sender.offer(finding())
    eventually(lambda: sender.outcomes["sent"] == 1)
    assert (list(api.events.values()), sender.outcomes["failed"]) == ([{}], 0)


def test_a_refusal_is_counted_and_trouble_is_tried_again(
    api: ApiServer, sender: KubernetesEvents, eventually: Callable[..., object]
) -> None:
    """403 settles it; 500 and 429 do not; a rotated token is read."""
    api.answers = [403]
    sender.offer(finding())
    eventually(lambda: sender.outcomes["failed"] == 1)
    api.answers = [500, 429]
    sender.offer(finding("f2"))
    eventually(lambda: sender.outcomes["sent"] == 1)
    assert list(api.events) == [f"orders-0.f2.{AT_US:x}"]


def test_a_storm_is_limited(
    api: ApiServer, sender: KubernetesEvents, eventually: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """A hundred findings cost a burst of requests; what waits follows at the steady rate."""
    for number in range(100):
        sender.offer(finding(f"f{number}"))
    eventually(lambda: sender.outcomes["sent"] == 10)
    assert len(api.requests) == 10
    monkeypatch.setattr("agent.publish.kubernetes.REFILL_S", 0.05)
    eventually(lambda: sender.outcomes["sent"] > 12)


def test_the_agent_sends_what_it_finds(
    api: ApiServer,
    account: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[..., object],
) -> None:
    """Wired into the agent by settings alone; off by default."""
    monkeypatch.setattr("agent.publish.kubernetes.TURN_S", 0.01)
    (tmp_path / "state").mkdir()
    flags = {"state_dir": str(tmp_path / "state"), "pod": "orders-0", "listen": ""}
    environment = {
        "STATEWARDEN_KUBERNETES_EVENTS": "warning",
        "STATEWARDEN_KUBERNETES_API": api.url,
        "STATEWARDEN_KUBERNETES_SERVICE_ACCOUNT_DIR": str(account),
    }
    assert Supervisor(load_config(flags=flags))._events is None
    supervisor = Supervisor(load_config(flags=flags, environment=environment))
    assert supervisor._events is not None
    supervisor._events.start()
    supervisor._emit(finding())
    eventually(lambda: api.events)
    supervisor._events.stop(5)
    assert [x["metadata"]["namespace"] for x in api.events.values()] == ["shop"]


def test_outside_a_pod_it_says_what_is_missing(tmp_path: Path) -> None:
    """No API server, or no service account: told at the start."""
    with pytest.raises(ConfigError, match=r"set kubernetes\.api outside a pod"):
        KubernetesEvents(KubernetesSettings(events="warning"), ORIGIN)
    settings = KubernetesSettings(
        events="warning", api="https://example.com", service_account_dir=str(tmp_path)
    )
    with pytest.raises(ConfigError, match="token: No such file"):
        KubernetesEvents(settings, ORIGIN)
