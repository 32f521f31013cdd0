"""Words that are true of a directory: what must be seen for it."""

from __future__ import annotations

import pytest

from tests.lab.plan import ALOS, EOS
from tests.lab.test_judge import kinds, look, run, said

LIVES = ((10, "a starts 4.3.0"), (70, "a starts 4.3.0"))


@pytest.mark.parametrize(
    ("release", "looks", "kind"),
    [
        ("4.3.0", [look("b")], "excused"),
        ("4.3.1", [look("b")], "false_alarm"),
        ("4.3.0", [look("a", "b")], "false_alarm"),
        ("4.3.0", [look("a", at_us=45), look("b")], "false_alarm"),  # the assignment took the lock over
        ("4.3.0", [], "false_alarm"),  # seen by no look
        ("4.3.0", [look("b", at_us=80)], "false_alarm"),
        ("4.3.0", [look("b"), look("a", at_us=5), look("a", at_us=80)], "excused"),  # of other processes
    ],
)
def test_a_directory_that_the_start_locks_and_that_is_not_assigned(release, looks, kind):
    """KAFKA-20663: no cleaner takes it while that process runs."""
    marks = tuple((at_us, what.replace("4.3.0", release)) for at_us, what in LIVES)
    assert kinds(run(release), words=[said("orphaned-task")], marks=marks, asked=looks) == [kind]


@pytest.mark.parametrize(
    ("guarantee", "mark", "looks", "kind"),
    [
        (EOS, "a is killed", [], "excused"),
        (EOS, "a is killed", [look("b")], "excused"),
        (EOS, "a is killed", [look("a")], "false_alarm"),
        (EOS, "a closed", [], "false_alarm"),
        (ALOS, "a is killed", [], "false_alarm"),
    ],
)
def test_a_task_that_cannot_be_opened_has_no_copy_there(guarantee, mark, looks, kind):
    """At any severity: it is about one process, and a look that found the task there says that it was opened."""
    marks = ((10, "a starts 4.4.0"), (20, mark), (30, "a starts 4.4.0"), (60, "truth: right"))
    for severity in ("warning", "critical"):
        word = said("unopenable-task", severity, at_us=40)
        assert kinds(run("4.4.0", guarantee), words=[word], marks=marks, asked=looks) == [kind]
