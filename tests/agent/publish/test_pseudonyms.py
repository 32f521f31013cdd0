"""Store and topic names become hashes; what readers join on and look at stays."""

from __future__ import annotations

from agent.contract.codec import Encoder
from agent.contract.events import Kind, Origin, Record
from agent.publish.pseudonyms import Pseudonyms, names_in

ORIGIN = Origin("uid", "boot", "orders-0")


def summary() -> Record:
    """Make a summary with every kind of name."""
    body: dict[str, object] = {
        "application_id": "orders",
        "task_id": "0_1",
        "stores": [{"store": "clients", "segment": "clients.1500", "bytes": 5}],
        "offsets": [{"topic": "orders-clients-changelog", "partition": 1, "offset": 9}],
    }
    return Record(Kind.SUMMARY, 1, body)


def finding(**fields: object) -> Record:
    """Make a finding that speaks of the store `clients`."""
    body: dict[str, object] = {
        "finding_id": "f", "detector": "clients", "level": "self", "severity": "info", "confidence": "confirmed",
        "status": "open", "opened_at_us": 1, "upstream": ["KAFKA-1"], "affected": "no", "missing_facts": [],
        "application_id": "orders", "summary": "Task 0_1: clients was remade.", "next_action": "Wipe clients.",
        "evidence": [{"at": "t", "what": "gone", "where": "orders/0_1/rocksdb/clients/LOCK"}],
    }  # fmt: skip
    return Record(Kind.FINDING, 1, {**body, **fields})


def test_structured_names_and_sentences_agree() -> None:
    """Store, topic, segment, sentences and paths: one name, one hash, and no name is left."""
    hide = Pseudonyms(b"key")
    one, two = hide.record(summary()), hide.record(finding(store="clients"))
    hashed = hide.hashed("clients")
    assert two.body["store"] == hashed
    assert one.body["stores"] == [{"store": hashed, "segment": f"{hashed}.1500", "bytes": 5}]
    assert one.body["offsets"] == [
        {"topic": hide.hashed("orders-clients-changelog"), "partition": 1, "offset": 9}
    ]
    assert two.body["summary"] == f"Task 0_1: {hashed} was remade."
    assert two.body["evidence"] == [{"at": "t", "what": "gone", "where": f"orders/0_1/rocksdb/{hashed}/LOCK"}]
    assert (two.body["application_id"], two.body["detector"]) == ("orders", "clients")
    for record in (one, two):
        assert "clients-" not in Encoder(ORIGIN).encode(record, 1)


def test_of_a_digest_only_names_change() -> None:
    """Store and topic have their hashes; fingerprints and words of the contract stay, whatever a store is called."""
    row = {
        "kind": "window",
        "state": "closed",
        "topic": "orders-a-changelog",
        "databases": [{"packed": "a+a/a"}],
    }
    body: dict[str, object] = {"application_id": "orders", "task_id": "0_1", "store": "a", "digests": [row]}
    hide = Pseudonyms(b"key")
    hide.learn(["a", "window", "closed"])
    hidden = hide.record(Record(Kind.DIGEST, 1, body)).body
    assert hidden["store"] == hide.hashed("a")
    assert hidden["digests"] == [row | {"topic": hide.hashed("orders-a-changelog")}]


def test_a_changelog_gives_its_stores_name_away() -> None:
    """From the topic alone the store's name is known, and found in later sentences."""
    assert names_in("orders-a-b-changelog", "orders") == ("orders-a-b-changelog", "a-b")
    assert names_in("clicks", "orders") == ("clicks",)
    hide = Pseudonyms(b"")
    hide.record(summary())
    assert "clients" not in hide.text("clients, orders-clients-changelog and rocksdb/clients.1500/LOG")


def test_names_of_the_inventory_are_asked_for_first() -> None:
    """A sentence that names a store before any field did is searched for what the dossier knows."""
    hide = Pseudonyms(b"", names=lambda application: ["clients"] if application == "orders" else [])
    assert "clients" not in str(hide.record(finding()).body["summary"])


def test_only_whole_words_are_replaced() -> None:
    """A name inside a longer word is no name; the longest of several names wins."""
    hide = Pseudonyms(b"")
    hide.learn(["a", "a-b", "store"])
    assert hide.text("apart a-b stores") == f"apart {hide.hashed('a-b')} stores"


def test_without_names_nothing_changes() -> None:
    """Records and log lines without names stay as they are."""
    record = Record(Kind.HEARTBEAT, 1, {"tasks": 3, "applications": ["orders"]})
    hide = Pseudonyms(b"k")
    assert hide.record(record) == record
    assert hide.fields({"message": "watching", "pid": 4}) == {"message": "watching", "pid": 4}


def test_the_key_decides_the_hash() -> None:
    """The same key gives the same hash everywhere, another key another one; odd names are hashed, too."""
    assert Pseudonyms(b"k").hashed("s") == Pseudonyms(b"k").hashed("s") != Pseudonyms(b"l").hashed("s")
    assert Pseudonyms(b"k").hashed("\udcff").startswith("h-")
