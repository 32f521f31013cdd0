"""Unpacks the real RocksDB files once per run."""

from __future__ import annotations

import pathlib
import tarfile

import pytest

from tests.support.tree_disk import TreeDisk

DATA = pathlib.Path(__file__).parents[3] / "data" / "rocksdb"


def _unpack(name, tmp_path_factory) -> TreeDisk:
    root = tmp_path_factory.mktemp(name)
    with tarfile.open(DATA / f"{name}.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return TreeDisk(root)


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """Stores of recorded runs, one directory each."""
    return _unpack("recorded", tmp_path_factory)


@pytest.fixture(scope="session")
def encodings(tmp_path_factory):
    """One database per encoding."""
    return _unpack("encodings", tmp_path_factory)
