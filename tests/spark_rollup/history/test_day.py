"""Making snapshots: which days, cut off between any two steps, and events that come in late or meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spark_rollup.bronze import snapshots
from spark_rollup.bronze.snapshots import MADE, TOKEN, Carried
from spark_rollup.errors import UsageError
from spark_rollup.history import carry, day
from spark_rollup.intake import ingest
from tests.spark_rollup.support.fleet import Fleet

DAYS = ("2026-11-18", "2026-11-19", "2026-11-20", "2026-11-21")


class CutOffError(Exception):
    """Stands for kill -9."""


class Session:
    """As much of a session as the order of steps needs."""

    class catalog:  # noqa: N801 - Spark's name
        """Caches nothing."""

        clearCache = staticmethod(lambda: None)  # noqa: N815 - Spark's name


def cut(*_: object, **__: object) -> None:
    raise CutOffError


@pytest.fixture
def bronze(tmp_path: Path) -> Path:
    """Four days with one file each; the newest two rest."""
    for name in DAYS:
        (tmp_path / "events" / f"day={name}").mkdir(parents=True)
        (tmp_path / "events" / f"day={name}" / "part").write_text(f"{name}\n")
    return tmp_path


@pytest.fixture
def summed(monkeypatch, bronze) -> Callable[[str], list[str]]:
    """Let texts stand for tables, and carry all on as it is; gives what a day's snapshot knows."""

    def events(_: object, place: Path, day: str) -> str:
        return "".join(path.read_text() for path in sorted((place / "events" / f"day={day}").iterdir()))

    def write(rows: str, target: Path) -> None:
        target.write_text(rows)

    def read(_: object, place: Path) -> Carried:
        return Carried(*((place / name).read_text() for name in ("events", "heard", "unwatched")))  # type: ignore[arg-type]

    def keep_all(rows: str, earlier: Carried | None, *_: int) -> Carried:
        return Carried((f"{earlier.events}" if earlier else "") + rows, "", "")  # type: ignore[arg-type]

    monkeypatch.setattr(day, "_events", events)
    monkeypatch.setattr(day, "_write", write)
    monkeypatch.setattr(snapshots, "read", read)
    monkeypatch.setattr(carry, "carry", keep_all)
    return lambda day: (snapshots.folder(bronze, day) / "events").read_text().split()


def run(bronze: Path) -> list[str]:
    return day.run(Session(), bronze, ())  # type: ignore[arg-type]


def test_every_day_that_does_not_rest_is_summed_up_once_from_the_day_before(bronze, summed):
    """The newest two days rest; a second run has nothing to do."""
    assert run(bronze) == [*DAYS[:2]] == snapshots.days_made(bronze)
    assert (summed(DAYS[0]), summed(DAYS[1])) == ([DAYS[0]], [*DAYS[:2]])
    assert run(bronze) == []


@pytest.mark.parametrize(
    ("owner", "step"),
    [(carry, "carry"), (day, "_write"), (Path, "rename")],
    ids=["before", "between", "after"],
)
def test_a_run_that_is_cut_off_leaves_nothing_that_holds(bronze, summed, monkeypatch, owner, step):
    """Neither before the tables, nor between them, nor before the marker; the repeat makes it whole."""
    with monkeypatch.context() as patch:
        patch.setattr(owner, step, cut)
        with pytest.raises(CutOffError):
            run(bronze)
    assert snapshots.days_made(bronze) == []
    assert run(bronze) == [*DAYS[:2]]
    assert summed(DAYS[1]) == [*DAYS[:2]]


def test_late_events_make_the_day_be_summed_up_again(bronze, summed):
    """Only from that day on: the day before it still holds. Nothing is lost or there twice."""
    run(bronze)
    (bronze / "events" / f"day={DAYS[1]}" / "late").write_text("late\n")
    snapshots.withdraw(bronze, DAYS[1])
    assert snapshots.days_made(bronze) == [DAYS[0]]
    assert run(bronze) == [DAYS[1]]
    assert sorted(summed(DAYS[1])) == [*DAYS[:2], "late"]


def test_events_that_come_in_meanwhile_make_it_begin_anew(bronze, summed, monkeypatch):
    """Whoever adds events takes the token away, so what was summed up without them never holds."""
    real, times = carry.carry, []

    def interrupted(*given: object) -> Carried:
        times.append(given)
        if len(times) == 1:
            (bronze / "events" / f"day={DAYS[0]}" / "late").write_text("late\n")
            snapshots.withdraw(bronze, DAYS[0])
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(carry, "carry", interrupted)
    assert run(bronze) == [*DAYS[:2]]
    assert len(times) == 3
    assert (snapshots.folder(bronze, DAYS[0]) / MADE).exists()
    assert sorted(summed(DAYS[1])) == [*DAYS[:2], "late"]


def test_a_day_that_never_rests_is_told(bronze, summed, monkeypatch):
    """After three tries it says which day and why, and leaves no snapshot of it."""
    real = carry.carry

    def interrupted(*given: object) -> Carried:
        snapshots.withdraw(bronze, DAYS[0])
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(carry, "carry", interrupted)
    with pytest.raises(UsageError, match="events of 2026-11-18 or before come in all the time"):
        run(bronze)
    assert snapshots.days_made(bronze) == []


def test_old_snapshots_go(bronze, summed, monkeypatch):
    """The newest few stay."""
    monkeypatch.setattr(day, "KEEP", 1)
    assert run(bronze) == [*DAYS[:2]]
    assert [place.name for place in (bronze / snapshots.FOLDER).iterdir()] == [f"day={DAYS[1]}"]


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_an_ingest_withdraws_before_it_adds_and_after(spark, tmp_path, monkeypatch):
    """Cut off once its events are there, a snapshot may have begun meanwhile: the repeat, that adds none, ends it."""
    fleet = Fleet("shop")
    fleet.pod("pod-a", ends_s=50, announces_end=False).holds("0_0", 5)
    source, bronze = fleet.write(tmp_path / "in"), tmp_path / "bronze"
    place = snapshots.folder(bronze, DAYS[0])
    place.mkdir(parents=True)
    later = snapshots.folder(bronze, DAYS[1])
    later.mkdir()
    for marker in (place / MADE, later / TOKEN):
        marker.write_text("{}")
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "write_events", cut)
        with pytest.raises(CutOffError):
            ingest.run(spark, source, bronze)
    assert not (place / MADE).exists()
    assert not (later / TOKEN).exists()
    with monkeypatch.context() as patch:
        patch.setattr(ingest, "_remember", cut)
        with pytest.raises(CutOffError):
            ingest.run(spark, source, bronze)
    (place / TOKEN).touch()
    assert ingest.run(spark, source, bronze).events == 0
    assert not (place / TOKEN).exists()
