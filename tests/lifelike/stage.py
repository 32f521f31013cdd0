"""One story on the stage: a state directory, a stand-in application, an agent that watches or a `scan` that looks."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from deploy.demo.agents import REPOSITORY, Agent, AgentError
from tests.lifelike.story import Said, Story, StoryError

APPLICATION = Path(__file__).with_name("application.py")
FOOTER_BYTES = 53
WATCHED_S = 2.0
"""The agent watches for so long before the story begins."""
DONE_WITHIN_S = 120.0
POLL_S = 0.05
PLAYS = 3
"""A story that could not be played to its end is started again so often in all."""

LAST_S = 14.0
"""The agent looks on for so long after the story: every verdict that waits has waited."""


class CutShortError(Exception):
    """The story could not be played to its end; says why."""


class Instance:
    """A running `application.py`, which does one line after the other."""

    def __init__(self, state: Path, name: str) -> None:
        """Start it on a state directory."""
        self._marker = state.parent / "done"
        self._process = subprocess.Popen(
            [sys.executable, str(APPLICATION), str(state), name], stdin=subprocess.PIPE, text=True
        )

    def tell(self, step: str) -> None:
        """Tell it a line; it may not have come to it yet."""
        assert self._process.stdin is not None
        self._process.stdin.write(step + "\n")
        self._process.stdin.flush()

    def does(self, *steps: str) -> None:
        """Tell it more, and wait until it has done all that it was told so far, or raise `CutShortError`."""
        self._marker.unlink(missing_ok=True)
        for step in (*steps, f"done {self._marker}"):
            self.tell(step)
        give_up_at = time.monotonic() + DONE_WITHIN_S
        while not self._marker.exists():
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                raise CutShortError("the application did not do in time what it was told")
            time.sleep(POLL_S)

    def ends(self) -> None:
        """Let it do what it was told so far, then leave without closing anything: what a kill leaves behind."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.is_dead()

    def is_dead(self) -> None:
        """Wait until it is; see `ends`."""
        if (code := self._process.wait()) > 0:
            raise CutShortError(f"the application ended early ({code}; 7: no inode number came back)")

    def kill(self) -> None:
        """End it; harmless if it has ended."""
        self._process.kill()
        self._process.wait()


class Stage:
    """Plays one story."""

    def __init__(self, story: Story, home: Path) -> None:
        self._story, self._home = story, home
        self._state = home / "state"
        self._state.mkdir(parents=True)
        self._said: list[Said] = []
        self._faults: list[str] = []
        self._agent: Agent | None = None
        self._application: Instance | None = None
        self._steps: Mapping[str, Callable[..., None]] = {
            "==": self._start_application,
            "@agent": self._start_agent,
            "@noagent": self._stop_agent,
            "@wait": lambda seconds: time.sleep(float(seconds)),  # how long is part of the story
            "@dead": self._wait_for_death,
            "@scan": self._scan,
            "@copy": self._copy,
            "@damage": self._damage,
        }

    def play(self) -> list[str]:
        """Play to the end and judge: what was wrong; `CutShortError`: something kept it from being played."""
        try:
            if "late" not in self._story.flags:
                self._start_agent()
            for step in self._story.steps:
                self._do(step)
            self._end_application()
            if self._agent is not None:
                time.sleep(LAST_S)
        except (OSError, AgentError, AssertionError) as error:
            raise CutShortError(str(error) or type(error).__name__) from error
        finally:
            self._clear()
        return [*self._faults, *self._story.faults(self._said)]

    def _do(self, step: str) -> None:
        word, *arguments = step.split()
        if word in self._steps:
            self._steps[word](*arguments)
        elif word.startswith("@"):
            raise StoryError(f"{self._story.name}: no such step: {step}")
        else:
            assert self._application is not None, f"{self._story.name}: {step}: no application runs"
            self._application.tell(step)

    def _start_application(self, name: str) -> None:
        self._end_application()
        self._application = Instance(self._state, name)

    def _end_application(self) -> None:
        if self._application is not None:
            self._application.ends()
            self._application = None

    def _wait_for_death(self) -> None:
        assert self._application is not None
        self._application.is_dead()
        self._application = None

    def _wait_until_done(self) -> None:
        if self._application is not None:
            self._application.does()

    def _damage(self, *how: str) -> None:
        self._wait_until_done()
        damage(self._state, *how)

    def _start_agent(self) -> None:
        home = self._home / "agent"
        self._agent = Agent("p0", self._state, home, self._home / "sink", self._story.settings, self._hear)
        self._agent.wait_ready()
        time.sleep(WATCHED_S)

    def _stop_agent(self) -> None:
        assert self._agent is not None
        self._agent.stop()
        self._agent = None

    def _hear(self, _pod: str, line: Mapping[str, object]) -> None:
        if line.get("logger") == "agent.findings":
            self._said.append(Said.of(line))

    def _scan(self) -> None:
        self._wait_until_done()
        sets = [part for pair in self._story.settings.items() for part in ("--set", "=".join(pair))]
        command = [sys.executable, "-m", "agent", "scan", str(self._state), "--json", *sets]
        done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, check=False)
        if done.returncode not in (0, 1, 3):
            self._faults.append(f"scan ended with {done.returncode}: {done.stderr.strip()[-200:]}")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self._said += [Said.of(row) for row in rows if row["line"] == "finding"]

    def _copy(self, bytes_per_s: str = "0") -> None:
        """Put a copy that kept no times in the place of the state directory."""
        self._end_application()
        original = self._home / "original"
        self._state.rename(original)
        copy_without_times(original, self._state, float(bytes_per_s))
        shutil.rmtree(original)

    def _clear(self) -> None:
        if self._application is not None:
            self._application.kill()
        if self._agent is not None:
            with suppress(AgentError):  # it is killed then
                self._agent.stop()


def play(story: Story, home: Path) -> list[str]:
    """Play one story in a directory of its own, more than once if need be; what was wrong, or nothing."""
    why = ""
    for number in range(1, PLAYS + 1):
        place = home / str(number)
        place.mkdir(parents=True)
        try:
            return Stage(story, place).play()
        except CutShortError as error:
            why = str(error)
    return [f"not played: {why}"]


# ------------------------------------------------------------------------------------ while nobody runs


def copy_without_times(source: Path, target: Path, bytes_per_s: float = 0) -> None:
    """Copy as `kubectl cp`, `cp -r`, `rsync -r` and a sync from an object store do: in order of names, times not kept.

    `bytes_per_s`: how fast the volume takes it; 0 = as fast as it can.
    """
    target.mkdir(parents=True)
    for entry in sorted(source.iterdir()):
        if entry.is_dir():
            copy_without_times(entry, target / entry.name, bytes_per_s)
            continue
        content = entry.read_bytes()
        if bytes_per_s:
            time.sleep(len(content) / bytes_per_s)
        (target / entry.name).write_bytes(content)


def damage(root: Path, pattern: str, how: str, number: str = "0") -> None:
    """Damage every file below `root` that matches; something must.

    `how`: `truncate` (to `number` bytes), `no-footer` (its last 53 bytes become zeros), `flip` (one bit of the byte at
    `number`), `remove`.
    """
    found = sorted(path for path in root.glob(pattern) if path.is_file())
    assert found, f"nothing matches {pattern}"
    for path in found:
        content = bytearray(path.read_bytes())
        if how == "remove":
            path.unlink()
            continue
        if how == "truncate":
            del content[int(number) :]
        elif how == "no-footer":
            content[-FOOTER_BYTES:] = bytes(FOOTER_BYTES)
        else:
            assert how == "flip", f"no such damage: {how}"
            content[int(number)] ^= 1
        path.write_bytes(content)
