"""The written plays: lives in which nothing is wrong, mishaps, and lives in which state is lost or wrongly kept.

In a benign life no agent may say that something is lost; of a bug the application itself proves what it did.
"""

from __future__ import annotations

from tests.lab.written import Play

_FILLED = "send 1500; start; settle; committed"
_FULL = "send 500; start; settle; stop"
_FULL_AND_SLOW = f"{_FULL}; start slow_unlink_us=1000000; settle 120"
_PROVED = "start; settle 120; stop-after-proof 'after the crash'"
_SEGMENT = "send-in 300 30 minute=1 offset_ms=-9500"
_KILLED_AND_COUNTED = """
    kill; start; settle 90; restorations; entries 'after the kill'; lost-entries
    send-in 50 3 minute=1 offset_ms=8000; settle; committed; entries 'after more records'; stop
"""
_TIMED_OUT = "time-out-commit delay_ms=3000"
_VERSIONS_KILLED = """
    settle; committed; idle 2 'nothing is in flight'; versions 'before the kill' {0}
    kill; start; settle 90; committed; versions 'after the kill' {0}
"""
_ALL_BACK = "settle 120; committed; prove 'after the kills'; stop a; stop b; stop c"

BENIGN: dict[str, Play] = {
    "life": Play(
        "Fresh start, orderly restart, crash while idle, restart, close while everything is committed.",
        """
        send 600 step_ms=200; start; settle; committed; stop
        start; settle; send 300 step_ms=200; settle; committed; kill
        start; settle; send 100 step_ms=200; settle; committed; stop
        """,
    ),
    "life-unlogged": Play(
        "No store has a changelog, so no checkpoint has an entry: fresh start, orderly restarts, a crash at the end.",
        "send 600 step_ms=200\n"
        + 3 * "start; settle unlogged; send 300 step_ms=200; settle unlogged; committed; stop\n"
        + """start; send 600 step_ms=200; settle unlogged; committed; kill
        start; idle 5 'whatever is left of the store'; stop""",
    ),
    "life-uncommitted": Play(
        "The same without waiting for a commit: a crash before it repeats work, and at-least-once means just that.",
        """
        send 600 step_ms=200; start; settle; stop
        start; settle; send 3000 step_ms=20; settle; kill
        start; settle; send 100 step_ms=20; settle; stop
        """,
    ),
    "scale": Play(
        "A second pod joins, the first restarts, the second leaves; the cleaner takes what is left behind.",
        """
        send 400; start a; settle; start b; running a; send 200; settle; committed
        stop a; settle 90; start a; running b; settle 90; idle-cleaner 2.2
        send 100; settle; stop b; settle 90; committed; stop a
        """,
    ),
    "threads": Play(
        "A stream thread is removed from a running instance, its tasks go to the other one, a new one joins.",
        """
        send 400; start; settle; committed
        ask 'thread remove'; mark 'a thread was removed'; settle 90; send 300; settle 90
        ask 'thread add'; mark 'a thread was added'; running a; settle 90; send 300; settle 90; committed; stop
        """,
    ),
    "fenced": Play(
        "A pause longer than the session: membership is lost, exactly-once wipes its active tasks and restores them.",
        """
        send 2000; start; settle; committed; send 500; settle; committed
        freeze; idle 6 'longer than the session timeout'; thaw; send 500; settle 90; running a; committed; stop
        """,
    ),
    "busy-crash": Play(
        "Killed in the middle of its work, with the commit interval of everyday, twice.",
        "send 2000; start; settle; committed\n"
        + 2 * "send-and-see 40000 seen=3000; kill; start; settle 120; prove 'after the crash'\n"
        + "committed; stop",
    ),
    "crash-restoring": Play(
        "Killed in the middle of a slow restoration on an empty disk, then again in the one that follows.",
        """
        send 6000; start b; settle; committed; stop b
        restore-some; kill; restore-some; kill
        start; settle 90; prove 'after the restoration'; stop
        """,
    ),
    "close-restoring": Play(
        "Closed in order in the middle of a slow restoration, then again in the one that follows.",
        """
        send 6000; start b; settle; committed; stop b
        restore-some; stop; restore-some; stop
        start; settle 90; prove 'after the restoration'; send 500; settle; committed; stop
        """,
    ),
    "new-store": Play(
        "A new topology adds a store to tasks that have one; on the next change it takes one away.",
        f"""
        {_FILLED}; stop
        stores kv,plain,window; start; settle; send 500; settle; committed; stop
        stores kv; start; settle; send 500; settle; committed; stop
        """,
    ),
    "stall": Play(
        "The broker does not answer for a while; commits time out, exactly-once wipes and restores, all goes on.",
        """
        send 4000; start; settle; committed; send 50; settle; stall 7; send 500
        settle 120; committed 120; running a; prove 'after the stall'; stop
        """,
    ),
    "compacted": Play(
        "Few keys, many updates, deletions, and a changelog that is compacted: offsets run far ahead of what is put.",
        "\n".join(
            f'send 300; {8 * "again 0 300; "}delete 250 300; {start}settle; idle 2.5 "the broker\'s cleaner"'
            for start in ("start; ", "", "", "")
        )
        + """
        committed; stop; start b; settle 90; send 300; settle; committed; stop b
        start a; settle 90; committed; stop a
        """,
    ),
    "standby-crash": Play(
        "Two pods with standbys; each is killed once while nothing is uncommitted, roles change places.",
        "send 1500; start a; start b; settle 90; committed\n"
        + "\n".join(
            f"kill {pod}; settle 90; send 600; settle 90; committed; start {pod}; settle 90; idle 3 'standbys catch up'"
            for pod in "ab"
        )
        + "\nsend 300; settle 90; committed; stop a; stop b",
    ),
    "life-late": Play(
        "Agents come late, leave and come back, also while the application is down or just starting.",
        """
        send 1500 step_ms=100; start watched=no; settle; committed
        watch a; send 500 step_ms=100; settle; committed
        unwatch a; kill; start watched=no; watch a; settle; send 500 step_ms=100; settle; committed
        unwatch a; stop; watch a; start; settle; committed; stop
        """,
    ),
    "slow-disk": Play(
        "Every unlink is slow: a wipe after a lost membership, and the cleaner on a task that moved, take their time.",
        """
        send 1000; start a slow_unlink_us=100000; settle; start b; running a; settle 90; committed
        directory-gone before=2.5
        freeze; idle 6 'longer than the session timeout'; thaw; settle 90; running a
        stop b; settle 120; committed; stop a
        """,
    ),
    "committed-crash": Play(
        "Agents that come late see a crash after which nothing is wrong: all that was flushed had been committed.",
        f"""
        send 500; start watched=no; settle plain; stop
        start watched=no; {12 * "again 0 500; "}committed; kill
        start; {12 * "again 0 500; "}committed; kill
        start; settle plain; committed; stop
        """,
    ),
    "long-tail": Play(
        "A crash long after the last checkpoint, with everything committed: the restoration is long and slow.",
        f"""
        {_FULL}; start; send 40000; settle; committed; idle 2 'the last commit'; kill
        start-slowly; running a; settle; prove 'after the restoration'; idle 3 'the restoration is over'; stop
        """,
    ),
    "life-idle": Play(
        "One partition never gets a record, one store of the other never gets an entry: starts, restarts, a crash.",
        "send 1500 partition=0 step_ms=100\n"
        + 2
        * """start; settle; committed; stop
        start; send 300 partition=0 step_ms=100; settle; committed; kill
        """
        + "start; settle; committed; stop",
    ),
    "clean-starts": Play(
        "`cleanUp()` before every start, as in many examples, after orderly closes and a crash.",
        "send 1500\n"
        + "\n".join(
            f"clean-start; settle 90; send 300; settle; committed; {ends}"
            for ends in ("stop", "kill", "stop")
        )
        + "\nstart; settle; stop",
    ),
    "crash-loop": Play(
        "A record that cannot be processed ends the instance, again and again, until it is fixed.",
        f"""
        {_FILLED}; fail; start; fail; start; fail
        start; settle 90; committed; prove 'after the last failure'; stop
        """,
    ),
    "replaced-threads": Play(
        "Records fail the thread and a new one takes its place and its tasks, in the same process.",
        f"""
        {_FILLED}; {3 * "fail-thread; settle 90; committed; "}prove 'after the last failure'; stop
        start; settle; stop
        """,
    ),
    "killed-closing": Play(
        "The time to close runs out: killed when the first store is closed and others are not, three times.",
        f"{_FILLED}\n"
        + 3
        * """send 2000; settle 90; mark 'a closes'; tell close; store-closed; kill
        start; settle 90; prove 'after the kill'
        """
        + "committed; stop",
    ),
    "rolling-busy": Play(
        "A rolling restart of two pods in the middle of their work, twice; roles change places each time.",
        "send 2000; start a; start b; settle 90; committed\n"
        + "".join(
            f"send 15000; stop {pod}; idle 1 'the pod is gone'; start {pod}; settle 120\n" for pod in "abab"
        )
        + "committed; prove 'after the restarts'; stop a; stop b",
    ),
    "neighbours": Play(
        "Two applications share a state directory; one restarts, crashes and cleans up while the other works on.",
        """
        send 1000; start; settle
        send 300; neighbour close; send 300; neighbour kill; send 300; neighbour close
        stop; start; settle; stop
        """,
    ),
    "upgrade": Play(
        "The same directory under one release after the other; agent and application are configured again each time.",
        "send 1000 step_ms=50; go-through-releases",
    ),
    "downgrade": Play(
        "The same directory under the release before, and back again, each closed in order.",
        "send 1000 step_ms=50; go-down-and-up",
    ),
}

MISHAPS: dict[str, Play] = {
    "versioned-crash": Play(
        "Old and new versions of records, all committed, and killed: nothing uncommitted can be in any store. Twice.",
        f"""
        send 1500; start; again 0 1500 later_ms=10000; again 0 1500 later_ms=20000
        {_VERSIONS_KILLED.format(20_000)}
        send 100; settle
        again 0 1600 later_ms=30000; again 0 1600 later_ms=40000; again 0 1600 later_ms=50000
        {_VERSIONS_KILLED.format(50_000)}
        stop
        """,
    ),
    "paused-restoring": Play(
        "`pause()` in the middle of a slow restoration: once it goes on, once it is killed, once it is closed.",
        """
        send 6000; start b; settle; committed; stop b
        watch a; pause-restoring; kill; pause-restoring; stop
        pause-restoring; ask resume; ask 'restore-delay 0'; mark 'a goes on after the pause'
        settle 90; prove 'after the restoration'; send 1000; settle; committed; prove 'at the end'; stop
        """,
    ),
    "rolling-kills": Play(
        "Three pods, killed one after the other as soon as the one before is back and has tasks again from the others.",
        "send 1000; start a; start b; start c; settle 90; committed\n"
        + "".join(
            f"send 100; settle 90; committed; kill {pod}; settle 120; start {pod}; idle-tasks {pod}\n"
            for pod in "abcab"
        )
        + _ALL_BACK,
    ),
    "reset": Play(
        "The application is reset, offsets and changelogs are deleted, but `cleanUp()` is not called: state is kept.",
        f"""
        {_FILLED}; prove 'before the reset'; stop
        drop-changelog kv; drop-changelog plain; forget; mark 'changelogs and offsets are deleted'
        send 200; start; committed 90; restorations; prove 'after the reset' kv; prove 'after the reset' plain
        send 200; committed; stop
        start; settle; prove 'after another restart' kv; prove 'after another restart' plain; stop
        """,
    ),
    "changelog-lost": Play(
        "Changelogs are recreated, offsets stay: what the state holds is in no changelog, and an empty disk shows it.",
        f"""
        {_FILLED}; stop; drop-changelog kv; drop-changelog plain; mark 'changelogs are deleted'
        send 200; start; settle; committed; send 200; settle; committed
        prove 'with the state that was kept'; idle 12 'it goes on'; stop
        start b; settle-or-prove 'on an empty disk' 10; stop b
        """,
    ),
}

BUGS: dict[str, Play] = {
    "uncommitted-crash": Play(
        "Flushed records of an open transaction, SIGKILL, restart: they must not be in the store (KAFKA-20685).",
        f"{_FULL}; flush-uncommitted; kill; {_PROVED}",
    ),
    "suspended-crash": Play(
        "The same after a rebalance over which the task stayed where it was (KAFKA-10362).",
        f"""
        {_FULL}; start a; settle; start b; running a; flush-held
        kill a; kill b; start a; settle 90; prove 'after the crash'; stop a
        """,
    ),
    "upgraded-crash": Play(
        "The same, but the start after the SIGKILL is of a later release, or the first one with transactional stores.",
        f"{_FULL}; flush-uncommitted; kill; start-upgraded; settle 120; stop-after-proof 'after the crash'",
    ),
    "close-after-corruption": Play(
        "A commit times out, tasks are wiped and restored slowly, the close in between writes an offset (KAFKA-16017).",
        f"""
        send 4000; start; settle; committed; {_TIMED_OUT} until='restore-start '; stop
        start; settle-or-prove 'after the close'; stop
        """,
    ),
    # a second pod makes the rebalance after the corruption last: alone, the task is replaced before it restores
    "close-after-corruption-of-a-table": Play(
        "The same with a table that is restored from its source topic: the close claims what was consumed (D13).",
        f"""
        start a; start b; running a; send 4000; settle table; committed; {_TIMED_OUT} until='restored '
        stop a; stop b; start a; settle-or-prove 'after the close' table; stop a
        """,
    ),
    "torn-cleanup": Play(
        "`cleanUp()` before the start is killed half way, with `.checkpoint` left and `CURRENT` gone.",
        f"""
        {_FULL}; launch a slow_unlink_us=300000; mark 'a cleans up'; tell cleanup; torn; kill; start-at-last
        settle-or-prove 'after the torn deletion'; send 50; prove 'after more records'; stop
        """,
    ),
    "torn-cleaner": Play(
        "The cleaner of a pod that a task left is killed half way; the task comes back to that pod.",
        """
        send 2000; start a slow_unlink_us=300000; settle; start b; running a; settle 90; committed
        torn; kill a; stop b; start-at-last
        settle-or-prove 'after the torn deletion'; send 50; prove 'after more records'; stop
        """,
    ),
    "early-cleaner": Play(
        "A task that was held for longer than the cleaner's delay moves away (KAFKA-20805).",
        """
        send 1000; start a; settle; idle 17 "longer than the cleaner's delay"; start b; running a; settle 90
        directory-gone; mark 'a directory of a is gone'; stop b; settle 90; stop a
        """,
    ),
    "segments-crash": Play(
        "New segments are flushed, old ones not; a crash leaves the oldest one's offset behind (KAFKA-20663).",
        f"""
        send 600 step_ms=15; start; settle; committed; stop
        start; {3 * "send 2400 step_ms=15; settle; committed; "}kill
        start; settle; prove 'after the crash'; stop
        """,
    ),
    "dirty-close": Play(
        "Membership is lost, the task is closed dirty with uncommitted records flushed, and killed before its wipe.",
        f"""
        {_FULL_AND_SLOW}; flush-uncommitted
        freeze; idle 6 'longer than the session timeout'; thaw-until-closed; kill; {_PROVED}
        """,
    ),
    "corrupt-kill": Play(
        "A commit times out, and the one after it; the corrupted task is closed and killed before its wipe.",
        f"{_FULL_AND_SLOW}; time-out-commit times=2 records=3000; store-closed; kill; {_PROVED}",
    ),
    "unrestored": Play(
        "A task completes on an empty changelog, goes away, grows, comes back to the same thread (KAFKA-7672).",
        """
        start a; start b; running a; send 4000; settle 90; committed; idle 10 "the cleaner's delay"; stop b
        settle-or-prove 'after the return'; send 50; committed; prove 'after more records'; stop a
        """,
    ),
    "lost-segment": Play(
        "The newer segment is flushed, the older one never; killed with everything committed and right, started again.",
        f"{_SEGMENT}; start; settle; committed\n"
        + "".join(
            f"send-in 800 3 minute=1 offset_ms={offset_ms}; settle; committed\n"
            for offset_ms in (0, 2400, 4800)
        )
        + f"newest-flushed; entries 'before the kill'; {_KILLED_AND_COUNTED}",
    ),
    "killed-between-segments": Play(
        "On a slow volume, killed in its orderly close when all is closed but the newest segment of the last store.",
        f"""
        {_SEGMENT}; start slow_sync_us=100000; settle; committed
        send-in 300 3 minute=1 offset_ms=0; settle; committed; entries 'before the close'
        mark 'a closes'; tell close; all-but-one-closed; {_KILLED_AND_COUNTED}
        """,
    ),
}

PLAYS = BENIGN | MISHAPS | BUGS
