"""Two digests of one store at the same offset are not the same: one of the two copies is wrong.

Signal: the digests of two copies of a store, both exact, at the same offset.
Fires when: a bucket is not the same, and no changelog was read, or it does not show which copy is wrong. Suspected
    where one of them was left by a kill, or a source topic serves as the changelog.
Clears when: the next `verify` finds the copies equal, or the changelog shows the wrong one (`state-differs`).
Stays quiet when: the copies are at different offsets, or one of them may hold more than its offset says.
Blind spots: a store with one copy; copies that are wrong in the same way; an audit without `--verified`.
Source: 128 bits of hashes per entry; equal offsets of one changelog mean equal contents.
"""

from __future__ import annotations

from agent.contract.events import Level, Severity
from agent.contract.mechanisms import Mechanism
from spark_rollup.fleet.meta import RuleMeta

META = RuleMeta(
    id="replicas-differ",
    title="Two copies of a store at the same offset do not hold the same",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.UNEQUAL_COPIES,
    consequence="One of the two copies is wrong; which one the application reads depends on the next assignment.",
)
