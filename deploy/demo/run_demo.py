"""`make demo`: recorded incidents repeated on real directories under live agents, then the verdict over the fleet.

Nothing is precomputed: the file operations and locks of the recorded pods are done again, one real agent per pod
finds what it finds, and the fleet audit reads what the agents shipped. Exit code: 0 all recorded bugs were found,
1 something was missed, 2 the demo itself failed, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(
    0, str(ROOT)
)  # a script sees only its own folder; tests import these modules from the root too

from deploy.demo.agents import Agent, AgentError, LogLine  # noqa: E402
from deploy.demo.materialise import MaterialiseError, Outcome, Progress, materialise_fleet  # noqa: E402
from deploy.demo.news import News  # noqa: E402
from deploy.demo.scenarios import Expected, Scenario, load_scenario  # noqa: E402
from deploy.demo.screen import Finding, Incident, Screen, show_verdict, urgent  # noqa: E402

SCENARIOS = ("kafka-8187-stage2-2.0.1", "kafka-7672-eos", "kafka-20685-4.1.2")
STATUS_EVERY_S = 10.0
SETTLE_S = 3.0  # longer than any timer that the recorded findings wait for
SHIPPED_AFTER_S = 18.0  # a segment is sealed at the age of 15 s, and shipped at once
MISSED, FAILED, INTERRUPTED = 1, 2, 130


class DemoError(Exception):
    """The demo cannot go on; says why."""


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of the demo's fleet: a recorded pod under a name that is unique in the fleet."""

    name: str
    recorded_name: str
    scenario: Scenario
    agent: Agent
    state_dir: Path


class Demo:
    """One run of the demo below one directory."""

    def __init__(self, base: Path, traces: Path, screen: Screen) -> None:
        """Read the scenarios; start nothing."""
        self.scenarios = [load_scenario(traces / name) for name in SCENARIOS]
        self.pods: list[Pod] = []
        self._base = base
        self._screen = screen
        self._done: dict[str, int] = {}
        self._news = News()

    # -- agents -----------------------------------------------------------------------------------------

    @contextmanager
    def agents(self) -> Iterator[None]:
        """Run one agent per pod inside the block; none outlives it."""
        try:
            for scenario in self.scenarios:
                for recorded_name in scenario.traces:
                    self.pods.append(self._start_pod(scenario, recorded_name))
            for pod in self.pods:
                pod.agent.wait_ready()
            yield
        finally:
            for pod in self.pods:
                pod.agent.kill()

    def _start_pod(self, scenario: Scenario, recorded_name: str) -> Pod:
        name = f"{scenario.id.split('-')[1]}-{recorded_name}"
        state_dir = self._base / "state" / name
        state_dir.mkdir(parents=True)
        agent = Agent(
            name, state_dir, self._base / "agents" / name, self.shipped, scenario.settings, self._on_line
        )
        return Pod(name, recorded_name, scenario, agent, state_dir)

    @property
    def shipped(self) -> Path:
        """The common directory that all agents ship to."""
        return self._base / "shipped"

    def _on_line(self, pod: str, line: LogLine) -> None:
        is_news = self._news.take(pod, line)
        if is_news and "detector" in line:
            self._screen.finding(pod, line)
        elif is_news:
            self._screen.event(pod, f"{line.get('level', 'agent')}: {line.get('message')}", "dim")

    def show_memory(self) -> None:
        """Print what each agent holds in memory."""
        sizes = [(pod.name, *pod.agent.memory_mib()) for pod in self.pods]
        shown = ", ".join(f"{name} {now:.0f}" for name, now, _ in sizes)
        self._screen.say(
            f"Resident memory of the agents, MiB: {shown} (highest {max(s[2] for s in sizes):.0f})"
        )

    def stop_agents(self) -> None:
        """Stop all agents in order, so that everything is flushed and shipped."""
        for pod in self.pods:
            code = pod.agent.stop()
            if code:
                raise DemoError(f"agent of {pod.name} ended with code {code}: {pod.agent.errors}")

    # -- recorded runs ----------------------------------------------------------------------------------

    def materialise(self) -> None:
        """Repeat all scenarios side by side; say how far they are every ten seconds."""
        stop = threading.Event()
        with ThreadPoolExecutor(len(self.scenarios)) as threads:
            runs = [threads.submit(self._repeat, scenario, stop) for scenario in self.scenarios]
            try:
                while wait(runs, STATUS_EVERY_S).not_done:
                    self._show_status()
                    _raise_failure(runs)
                _raise_failure(runs)
            finally:
                stop.set()  # on Ctrl-C and errors; the pool waits for its threads

    def _repeat(self, scenario: Scenario, stop: threading.Event) -> dict[str, Outcome]:
        pods = {
            pod.name: (scenario.traces[pod.recorded_name], pod.state_dir)
            for pod in self.pods
            if pod.scenario is scenario
        }
        return materialise_fleet(pods, 1.0, self._on_progress, stop)

    def _on_progress(self, progress: Progress) -> None:
        self._done[progress.pod] = progress.done
        operation = progress.operation
        if operation["op"] == "start":
            self._screen.event(
                progress.pod, f"application starts (Kafka Streams {operation['version']})", "dim"
            )
        elif operation["op"] == "exit":
            end = "is killed (SIGKILL)" if operation["how"] == "killed" else "stops"
            self._screen.event(progress.pod, f"application {end}", "dim")

    def _show_status(self) -> None:
        done = sum(self._done.copy().values())
        self._screen.event("", f"-- {done} file operations repeated, {self._news}", "dim")

    # -- verdict ----------------------------------------------------------------------------------------

    def audit(self) -> tuple[list[Finding], list[Incident], Path]:
        """Run the fleet audit over what was shipped; return its findings, its incidents and the report's path."""
        output = self._base / "audit"
        command = [sys.executable, "-m", "spark_rollup", "audit", "--json"]
        command += ["--input", str(self.shipped), "--output", str(output)]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that Spark's Java ends with it, see below
        )
        try:
            printed, errors = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        report = output / "report.html"
        # 1 = critical findings, which is what we hope for; it is also how Python ends after a crash
        if process.returncode not in (0, 1) or not report.is_file():
            raise DemoError(f"the fleet audit ended with code {process.returncode}: {errors.strip()[-2000:]}")
        lines = (output / "incidents.jsonl").read_text(encoding="ascii").splitlines()
        findings, incidents = ([json.loads(line) for line in each] for each in (printed.splitlines(), lines))
        return findings, incidents, report

    def missed(self, findings: Sequence[Finding], incidents: Sequence[Incident]) -> list[str]:
        """List what the recordings must lead to and what was not found, by an agent or by the audit.

        Of each recorded bug there must be exactly one incident.
        """
        counts = {x.application_id: len(urgent(incidents, x.application_id)) for x in self.scenarios}
        problems = [
            f"{x.issue} must be one incident, and is {counts[x.application_id]}"
            for x in self.scenarios
            if counts[x.application_id] != 1
        ]
        for pod in self.pods:
            for item in pod.scenario.expected:
                if item.pod != pod.recorded_name:
                    continue
                what = (
                    f"{'/'.join(item.detectors)} on task {item.task_id} of {pod.name} ({pod.scenario.issue})"
                )
                if not any(_reports(line, item) for line in pod.agent.lines):
                    problems.append(f"the agent did not report {what}")
                if item.severity == "critical" and not any(
                    _confirms(row, item, pod.scenario) for row in findings
                ):
                    problems.append(f"the fleet audit has nothing critical for {what}")
        return problems


def _reports(line: LogLine, item: Expected) -> bool:
    return (
        line.get("detector") in item.detectors
        and line.get("task_id") == item.task_id
        and line.get("change") in ("opened", "escalated")
        and item.severity in (None, line.get("severity"))
    )


def _confirms(row: Finding, item: Expected, scenario: Scenario) -> bool:
    wanted = {
        "application_id": scenario.application_id,
        "task_id": item.task_id,
        "severity": "critical",
        "status": "open",
    }
    return all(row[name] == value for name, value in wanted.items())


def _raise_failure(runs: Sequence[Future[dict[str, Outcome]]]) -> None:
    for run in runs:
        if run.done():
            run.result()


def show_plan(demo: Demo, screen: Screen, base: Path) -> None:
    """Say what is going to happen."""
    screen.say(
        "statewarden demo: recorded runs of real Kafka Streams releases, repeated under live agents", "head"
    )
    for scenario in demo.scenarios:
        pods = len(scenario.traces)
        screen.say(f"  {scenario.issue:<12} Kafka Streams {scenario.release:<6} {pods} pod{'s' * (pods > 1)}")
    screen.say(f"  Everything happens below {base}; Ctrl-C stops it and cleans up.")
    screen.say()


def run(demo: Demo, screen: Screen, *, keep: bool) -> int:
    """Run the whole story; return the exit code."""
    began = time.monotonic()
    with demo.agents():
        screen.say(
            f"{len(demo.pods)} agents are up. The recorded pods start now, at their recorded speed.", "head"
        )
        screen.restart_clock()
        demo.materialise()
        time.sleep(SETTLE_S)
        screen.say()
        demo.show_memory()
        if keep:
            screen.say("Waiting until everything found so far is shipped.")
            time.sleep(SHIPPED_AFTER_S)
        else:
            demo.stop_agents()
        screen.say("Fleet audit over what the agents shipped (starts Spark) ...")
        findings, incidents, report = demo.audit()
        show_verdict(screen, incidents)
        screen.say()
        missed = demo.missed(findings, incidents)
        for problem in missed:
            screen.say(f"MISSED: {problem}", "critical")
        if not missed:
            screen.say(
                "Every recorded bug was found by its agent, and is one incident of the fleet audit.", "good"
            )
        screen.say(f"Report: {report}", "head")
        screen.say(f"Took {time.monotonic() - began:.0f} s.")
        if keep:
            keep_serving(demo, screen)
    return MISSED if missed else 0


def keep_serving(demo: Demo, screen: Screen) -> None:
    """Leave the agents up until Ctrl-C."""
    screen.say("The agents stay up until Ctrl-C:")
    for pod in demo.pods:
        screen.say(f"  {pod.name:<12} {pod.agent.url}/metrics")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        screen.say("Stopping.")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Unwind once; a second Ctrl-C must not interrupt the clean-up."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and run; clean up on Ctrl-C and SIGTERM."""
    parser = argparse.ArgumentParser(prog="run_demo", description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("--keep", action="store_true", help="leave the agents serving /metrics until Ctrl-C")
    parser.add_argument("--traces", type=Path, default=ROOT / "tests" / "data" / "traces", metavar="DIR")
    parsed = parser.parse_args(arguments)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    screen = Screen()
    base = Path(tempfile.mkdtemp(prefix="statewarden-demo-"))
    try:
        demo = Demo(base, parsed.traces, screen)
        show_plan(demo, screen, base)
        return run(demo, screen, keep=parsed.keep)
    except KeyboardInterrupt:
        shutil.rmtree(base)
        screen.say("Interrupted; everything is stopped and removed.")
        return INTERRUPTED
    except (AgentError, DemoError, MaterialiseError, OSError) as error:
        screen.say(f"The demo failed: {error}", "critical")
        screen.say(f"What there was so far: {base}")
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
