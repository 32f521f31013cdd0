"""A real Prometheus and a real Alertmanager on the loopback, with the committed rules and routes, and a webhook."""

from __future__ import annotations

import json
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.agents import free_port
from tests.conftest import wait_until
from tests.delivery.servers import running
from tests.support.answering import Answer, Request, answering
from tests.support.exposed import answered

REPOSITORY = Path(__file__).resolve().parents[2]
RULES = REPOSITORY / "deploy" / "alerts"
RECEIVERS = ("pages", "tickets", "reading", "dead-man")

Alert = dict[str, Any]


class Webhook:
    """Takes what Alertmanager sends, by receiver; also serves fixed texts as a scrape target."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        """Listen on a free port; `texts` are answered to GET, by path."""
        self.got: dict[str, list[Alert]] = {name: [] for name in RECEIVERS}
        self._texts, self._stack = texts, ExitStack()
        self.address = self._stack.enter_context(answering(self._answer)).removeprefix("http://")

    def _answer(self, request: Request) -> Answer:
        if request.method == "GET":
            return 200, {"Content-Type": "text/plain; version=0.0.4"}, self._texts[request.path].encode()
        self.got[request.path.strip("/")].extend(json.loads(request.body)["alerts"])
        return 200, {}, b""

    def close(self) -> None:
        self._stack.close()


class Monitoring:
    """Prometheus and Alertmanager, each one process, scraping and evaluating every second."""

    def __init__(
        self, base: Path, targets: Mapping[str, Sequence[Mapping[str, str]]], webhook: Webhook
    ) -> None:
        """Start both; `targets`: job -> targets, each with `__address__` and the labels that a PodMonitor would add."""
        programs = {name: shutil.which(name) for name in ("prometheus-alertmanager", "prometheus")}
        if None in programs.values():
            pytest.skip("no Prometheus: apt-get install prometheus prometheus-alertmanager")
        base.mkdir(parents=True, exist_ok=True)
        ports = {name: free_port() for name in programs}
        manager, server = (f"127.0.0.1:{port}" for port in ports.values())
        self.url = f"http://{server}"
        (base / "alertmanager.yaml").write_text(_routes(webhook.address))
        (base / "prometheus.yaml").write_text(_scrapes(targets, manager))
        flags = {
            # the first alert fires before Alertmanager is discovered: have it sent again sooner than in a minute
            "prometheus": (
                f"--config.file={base}/prometheus.yaml", f"--storage.tsdb.path={base}/data",
                "--rules.alert.resend-delay=2s",
            ),
            "prometheus-alertmanager": (
                f"--config.file={base}/alertmanager.yaml", f"--storage.path={base}/am", "--cluster.listen-address="),
        }  # fmt: skip
        with ExitStack() as stack:
            for name, program in programs.items():
                address = f"127.0.0.1:{ports[name]}"
                command = [str(program), *flags[name], f"--web.listen-address={address}"]
                stack.enter_context(running(command, base / f"{name}.log", ports[name]))
                ready = f"http://{address}/-/ready"
                wait_until(lambda url=ready: answered(url) is not None)  # type: ignore[misc]
            self._stack = stack.pop_all()

    def query(self, expr: str) -> list[Any]:
        """Ask for the present value of an expression."""
        result: list[Any] = self._api("query", query=expr)["result"]
        return result

    def query_range(self, expr: str, seconds: int) -> list[Any]:
        """Ask for the last seconds of an expression, one point a second."""
        now = time.time()
        result: list[Any] = self._api("query_range", query=expr, start=now - seconds, end=now, step=1)[
            "result"
        ]
        return result

    def firing(self) -> list[Alert]:
        """List alerts that fire."""
        return [alert for alert in self._api("alerts")["alerts"] if alert["state"] == "firing"]

    def unhealthy_rules(self) -> list[str]:
        """List rules that Prometheus could not evaluate."""
        groups = self._api("rules")["groups"]
        return [
            f"{x['name']}: {x['lastError']}"
            for group in groups
            for x in group["rules"]
            if x["health"] == "err"
        ]

    def close(self) -> None:
        self._stack.close()

    def _api(self, call: str, **parameters: object) -> Any:
        url = f"{self.url}/api/v1/{call}?{urllib.parse.urlencode(parameters)}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]


def _routes(webhook: str) -> str:
    """Give the committed routes, with receivers that end at the webhook."""
    text = (RULES / "alertmanager.yaml").read_text(encoding="utf-8")
    for name in RECEIVERS:
        hook = f"- name: {name}\n  webhook_configs:\n  - url: http://{webhook}/{name}\n    send_resolved: false\n"
        assert f"- name: {name}\n" in text
        text = text.replace(f"- name: {name}\n", hook)
    return text


def _scrapes(targets: Mapping[str, Sequence[Mapping[str, str]]], manager: str) -> str:
    jobs = [
        {
            "job_name": job,
            "static_configs": [
                {"targets": [x["__address__"]], "labels": {k: v for k, v in x.items() if k != "__address__"}}
                for x in rows
            ],
        }
        for job, rows in targets.items()
    ]
    return json.dumps(  # JSON is YAML
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES / "*.rules.yaml")],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
            "scrape_configs": jobs,
        }
    )
