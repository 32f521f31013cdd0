"""A real browser for tests: Chromium without a window, spoken to over a pipe (DevTools protocol), no network."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--remote-debugging-pipe",
    "--proxy-server=127.0.0.1:9",  # loopback is reached past the proxy; nothing else is
)  # fmt: skip

_GONE = "Inspected target navigated or closed"


class Browser:
    """One page in one Chromium process."""

    def __init__(self) -> None:
        """Start; skips the test where there is no Chromium."""
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        if program is None:
            pytest.skip("no chromium: apt-get install chromium")
        self._profile = tempfile.mkdtemp(prefix="statewarden-chromium-")
        # the browser reads commands on descriptor 3 and answers on 4
        read_commands, self._commands = os.pipe()
        self._answers, write_answers = os.pipe()
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{read_commands} 4>&{write_answers}', "bash", program, *_FLAGS,
             f"--user-data-dir={self._profile}", "about:blank"],
            pass_fds=(read_commands, write_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(read_commands)
        os.close(write_answers)
        self._buffer, self._number, self._session = b"", 0, ""
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Send one command and wait for its answer."""
        self._number += 1
        message: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            said = self._read()
            if said.get("id") == self._number:
                if said.get("error", {}).get("message") == _GONE:
                    return {"result": {}}
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result

    def open(self, url: str, width: int = 1100, height: int = 900, *, dark: bool = False) -> None:
        """Load a page at a size, in light or dark, and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 700,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.requests.clear()
        self.call("Page.navigate", url=url)
        while self._read().get("method") != "Page.loadEventFired":
            pass

    def ask(self, script: str) -> Any:
        """Evaluate an expression in the page; None where another page comes before the answer."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **extra
            )

    def lowest_contrast(self) -> float:
        """Find the worst contrast between a text that is shown and its background, as WCAG counts it."""
        return float(self.ask(_CONTRAST))

    def print_pages(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"])

    def photograph(self, target: Path) -> bytes:
        """Take a picture of the whole page, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 8000), "scale": 1}
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        content = base64.b64decode(shot["data"])
        target.write_bytes(content)
        return content

    def close(self) -> None:
        """End the browser and remove its profile."""
        self._process.kill()
        self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        shutil.rmtree(self._profile, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._answers, 1 << 16)
            assert more, "the browser is gone"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        said: dict[str, Any] = json.loads(line)
        if said.get("method") == "Network.requestWillBeSent":
            self.requests.append(said["params"]["request"]["url"])
        return said


_CONTRAST = """
(() => {
  const rgb = c => c.match(/[\\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = rgb(c).map(v => { v /= 255;
    return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; }); return .2126 * r + .7152 * g + .0722 * b; };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (rgb(c)[3] !== 0) return c; } };
  let lowest = 99;
  for (const e of document.body.querySelectorAll('*')) {
    if (e.closest('svg') || !e.checkVisibility()) continue;
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    const a = light(getComputedStyle(e).color), b = light(ground(e));
    lowest = Math.min(lowest, (Math.max(a, b) + .05) / (Math.min(a, b) + .05));
  }
  return lowest;
})()
"""
