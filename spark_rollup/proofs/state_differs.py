"""A digest of a store and its changelog cannot both be right: entries are missing, extra, or have another value.

Signal: the digest of a copy, bucket by bucket, beside that of the committed records of its changelog up to the copy's
    offset.
Fires when: a bucket cannot be that of the changelog, whatever later records, compaction and expiry may have replaced.
    Suspected where the application was killed, or a source topic serves as the changelog.
Clears when: the next `verify` finds the copy, or the one that took its place, no longer different.
Stays quiet when: what decides is compacted away, expired or behind the offset (`undecidable`, `partly-equal`).
Blind spots: a copy without a digest; global and in-memory stores; an audit without `--verified`; a changelog that is
    wrong itself: what never reached it is not missing in it.
Source: 128 bits of hashes per entry, by the same hash in the agent and in Spark; both fold a key by the same rule.
"""

from __future__ import annotations

from agent.contract.events import Level, Severity
from agent.contract.mechanisms import Mechanism
from spark_rollup.fleet.meta import RuleMeta

META = RuleMeta(
    id="state-differs",
    title="A store does not hold what its changelog says",
    level=Level.DAMAGE,
    severity=Severity.CRITICAL,
    mechanism=Mechanism.UNEQUAL_COPIES,
    consequence=(
        "Store and changelog disagree: entries are missing or extra. This copy may be the only one left "
        "with records that the changelog lost."
    ),
)
