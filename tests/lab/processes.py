"""The processes of the lab: JVMs that take commands line by line, the broker, one application instance."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from deploy.demo.agents import free_port
from tests.lab.design import Run
from tests.lab.faults import planted_classes
from tests.lab.plan import numbers
from tests.lab.toolbox import (
    BROKER_RELEASE,
    application_classes,
    broker_classes,
    preloaded,
    tool,
)

NEWEST_BROKER = "4.3.1"
BROKER_S = 300.0
"""For the broker to start, and for each answer of its tool. With 4 % of a core it starts in two minutes and answers in
ten seconds; nothing is judged by it, and an end is noticed at once. `Broker.java` waits longer."""
ANSWER_S = 60.0
POLL_S = 0.05
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto")


class LiveError(Exception):
    """A process did not do in time what it was asked to."""


def wait_until(condition: Callable[[], object], what: str, within_s: float = ANSWER_S) -> None:
    """Ask again and again until a condition holds, or raise `LiveError`."""
    give_up_at = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > give_up_at:
            raise LiveError(f"after {within_s:.0f} s still not: {what}")
        time.sleep(POLL_S)


class JavaProcess:
    """A JVM with our main class: commands go to its standard input, marked lines of its output are kept."""

    def __init__(
        self,
        name: str,
        class_path: str,
        main: Sequence[str],
        mark: str,
        scratch: Path,
        *,
        environment: Mapping[str, str] | None = None,
        launcher: Sequence[str] = (),
    ) -> None:
        """Start it.

        `mark` begins the lines of output that count; `scratch` gets temporary files and what it says on standard error;
        `launcher` runs `java` with the arguments that follow.
        """
        self.name = name
        self.lines: list[str] = []
        self._mark = mark
        self._changed = threading.Condition()
        scratch.mkdir(parents=True, exist_ok=True)
        self._errors = scratch / f"{name}.err"
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                [
                    *(launcher or (tool("java"),)),
                    *_JVM,
                    f"-Djava.io.tmpdir={scratch}",
                    "-cp",
                    class_path,
                    *main,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
                env=os.environ | (environment or {}),
            )
        self._reader = threading.Thread(target=self._read, name=f"read-{name}", daemon=True)
        self._reader.start()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, command: str, within_s: float = ANSWER_S) -> str:
        """Send a command and give its answer."""
        seen = len(self.lines)
        self.tell(command)
        return self.wait_for("answer ", seen, within_s).removeprefix("answer ")

    def tell(self, command: str) -> None:
        """Send a command without waiting for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def wait_for(self, start: str, after: int = 0, within_s: float = ANSWER_S) -> str:
        """Wait for a line that begins so, after the first `after` lines; `LiveError`: it does not come in time."""
        give_up_at = time.monotonic() + within_s
        with self._changed:
            while True:
                found = next((line for line in self.lines[after:] if line.startswith(start)), None)
                if found is not None:
                    return found
                left_s = give_up_at - time.monotonic()
                if left_s <= 0 or not self._reader.is_alive():
                    last = self._errors.read_text(errors="replace").strip()[-500:]
                    raise LiveError(
                        f"{self.name}: no {start!r} within {within_s:.0f} s; {self.lines[-5:]} {last}"
                    )
                self._changed.wait(min(left_s, 0.5))

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once (SIGKILL) and wait until it ends."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def exit(self) -> None:
        """Ask it to leave and wait until it ends."""
        self.tell("exit")
        self._process.wait(ANSWER_S)
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(self._mark):
                with self._changed:
                    self.lines.append(line[len(self._mark) :].strip())
                    self._changed.notify_all()


class Broker:
    """A real Kafka broker in KRaft mode on the loopback interface, in a directory of its own."""

    def __init__(self, home: Path, release: str = BROKER_RELEASE) -> None:
        """Format the directory, start the broker, wait until it answers."""
        port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": home / "data",
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "offsets.topic.segment.bytes": 1_048_576,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 4,
            "transaction.state.log.segment.bytes": 1_048_576,
            "group.initial.rebalance.delay.ms": 0,
            "group.min.session.timeout.ms": 1000,
            "log.cleaner.backoff.ms": 500,
            "log.cleaner.dedupe.buffer.size": 4_194_304,
            "log.index.size.max.bytes": 1_048_576,
            "auto.create.topics.enable": "false",
            # only 4.2 and later know these; others ignore them
            "group.streams.min.session.timeout.ms": 1000,
            "group.streams.session.timeout.ms": 3000,
            "group.streams.min.heartbeat.interval.ms": 100,
            "group.streams.heartbeat.interval.ms": 500,
        }
        home.mkdir(parents=True)
        properties = home / "server.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        class_path = broker_classes(release)
        format_command = [
            "kafka.tools.StorageTool",
            "format",
            "-t",
            "AAAAAAAAAAAAAAAAAAAAAQ",
            "-c",
            str(properties),
        ]
        subprocess.run(
            [tool("java"), *_JVM, "-cp", class_path, *format_command], check=True, capture_output=True
        )
        self._command = (
            "broker",
            class_path,
            ["Broker", str(properties), self.address],
            "tool: ",
            home / "tmp",
        )
        self._start()

    def _start(self) -> None:
        self._java = JavaProcess(*self._command)
        self._java.wait_for("ready", within_s=BROKER_S)

    def restart(self) -> None:
        """Kill it and start it again on its directory."""
        self._java.kill()
        self._start()

    def do(self, command: str) -> str:
        """Let the broker's tool do something, see `Broker.java`; `LiveError`: it could not."""
        seen = len(self._java.lines)
        self._java.tell(command)
        answer = self._java.wait_for("", seen, BROKER_S)
        if answer.startswith("problem"):
            raise LiveError(f"{command}: {answer}")
        return answer

    def is_forgotten(self, application_id: str) -> bool:
        """Delete the group's offsets: an instance that closes does not say so, it is gone once its session is over."""
        try:
            self.do(f"forget {application_id}")
        except LiveError:
            return False
        return True

    def stall(self, seconds: float) -> None:
        """Let it answer nobody for a while (SIGSTOP): the length is the scenario."""
        self._java.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._java.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._java.kill()


def broker_release(run: Run) -> str:
    """Tell which broker talks to a run's release: the newest one that does."""
    return NEWEST_BROKER if numbers(run.release) >= (2, 1) else BROKER_RELEASE


class Brokers:
    """The newest broker that talks to a run's release, started when it is first needed."""

    def __init__(self, home: Path, written: str = BROKER_RELEASE) -> None:
        """Start nothing yet; `written`: release of the broker for written plays."""
        self._home, self._written = home, written
        self._running: dict[str, Broker] = {}
        self._started = 0

    def for_run(self, run: Run) -> Broker:
        return self.of(self._written if run.label else broker_release(run))

    def of(self, release: str) -> Broker:
        if release not in self._running:
            self._started += 1
            self._running[release] = Broker(self._home / f"broker-{self._started}-{release}", release)
        return self._running[release]

    def stop(self) -> None:
        """End all; the next run has a new one."""
        while self._running:
            self._running.popitem()[1].stop()


def start_application(
    pod: str,
    release: str,
    settings: Mapping[str, object],
    scratch: Path,
    slow_unlink_us: int = 0,
    slow_sync_us: int = 0,
    launcher: Sequence[str] = (),
) -> JavaProcess:
    """Start one instance; it has not joined its group before `start` is asked of it.

    `settings` are arguments of `App.java`; `live.planted` names a fault that its Kafka Streams has. `slow_unlink_us`
    and `slow_sync_us`: what each unlink, each sync below its state directory takes longer, microseconds.
    """
    environment = {}
    if slow_unlink_us or slow_sync_us:
        environment = {
            "LD_PRELOAD": str(preloaded("slow_volume")),
            "LIVE_SLOW_US": str(slow_unlink_us),
            "LIVE_SLOW_SYNC_US": str(slow_sync_us),
            "LIVE_SLOW_BELOW": str(settings["state.dir"]),
        }
    arguments = [f"{key}={value}" for key, value in settings.items()]
    fault = str(settings.get("live.planted", ""))
    planted = f"{planted_classes(fault, release)}:" if fault else ""
    return JavaProcess(
        pod,
        f"{planted}{application_classes(release)}",
        ["App", *arguments],
        "app: ",
        scratch,
        environment=environment,
        launcher=launcher,
    )
