"""Ctrl-C and SIGTERM: a command that gets one ends with 128 + its number, whatever its libraries make of it.

An exception that a handler raises is not sure to arrive. Python drops it in a destructor, in a generator that is being
closed or in the callback of a weak reference (imports have these), a library in C may drop it or raise another one in
its place, and an `except` may take it. Exit codes 1 and 2 say something about stores, so the code goes by what was
received and not by what arrived; and what did not arrive is raised again.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType

AGAIN_S = 0.5
"""Time until an interrupt that did not end the work is raised again."""
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def guarded(work: Callable[[], int], *, is_all: bool = False) -> int:
    """Run some work until it ends or a signal ends it; the main thread only. Inside of itself it only runs the work.

    The first signal raises a KeyboardInterrupt. While that is on its way out, later ones change nothing, so that what
    cleans up behind it is not cut short. A signal that the process was started to ignore stays ignored.

    Args:
        work: Returns the exit code.
        is_all: The process ends with this work, so a signal that comes later ends it at once.

    Returns:
        Exit code: that of the work, or 128 + the number of the first signal.
    """
    return work() if _Guard.is_up else _Guard().run(work, is_all=is_all)


class _CutShortError(KeyboardInterrupt):
    """Not KeyboardInterrupt itself: where one left an `exec`, Python ends by SIGINT, whatever the exit code."""


class _Guard:
    """The handlers of one piece of work."""

    is_up = False

    def __init__(self) -> None:
        self._number = 0
        self._is_over = False
        self._before: dict[int, object] = {}
        self._timer = (0.0, 0.0)
        self._outside = sys.exception()  # what the caller is handling, if anything
        self._say_dropped = sys.unraisablehook

    def run(self, work: Callable[[], int], *, is_all: bool) -> int:
        code = 0
        try:
            self._take_over()
            code = work()
            self._is_over = True
        except BaseException as error:
            self._is_over = True
            if isinstance(error, KeyboardInterrupt):
                self._number = self._number or signal.SIGINT
            if not self._number:
                raise
        finally:
            self._give_back(is_all=is_all)
        return 128 + self._number if self._number else code

    def _take_over(self) -> None:
        _Guard.is_up = True
        self._say_dropped, sys.unraisablehook = sys.unraisablehook, self._on_dropped
        for number in _SIGNALS:
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                self._before[number] = before
                signal.signal(number, self._receive)

    def _give_back(self, *, is_all: bool) -> None:
        if signal.SIGALRM in self._before:
            signal.setitimer(signal.ITIMER_REAL, *self._timer)
        for number, before in self._before.items():
            signal.signal(number, signal.SIG_DFL if is_all else before)  # type: ignore[arg-type]
        sys.unraisablehook = self._say_dropped
        _Guard.is_up = False

    def _on_dropped(self, dropped: sys.UnraisableHookArgs) -> None:
        """Say nothing of an interrupt that Python drops: it is raised again. All else is reported as before."""
        if dropped.exc_type is not _CutShortError:
            self._say_dropped(dropped)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self._number or self._is_over:
            self._number = self._number or number
            self._raise_again()
            return
        self._number = number
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._raise_again)
        self._timer = signal.setitimer(signal.ITIMER_REAL, AGAIN_S, AGAIN_S)
        raise _CutShortError

    def _raise_again(self, *_: object) -> None:
        """Raise once more, unless the work is handling an exception: that is what the first became, or passes soon."""
        if not self._is_over and sys.exception() is self._outside:
            raise _CutShortError
