"""A stripped root has what the program needs and nothing else, and dpkg's record says the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deploy.images import bare
from tests.containers import contents

PACKAGES = {
    "apt": ("usr/bin/apt",),
    "bash": ("bin/bash",),
    "base-files": ("etc/os-release",),
    "dash": ("bin/sh",),
    "libz1": ("usr/lib/libz.so.1",),
    "login": ("usr/bin/su",),
    "gcc-base": (),
    "python-bin": ("usr/bin/python3.13",),
    "python-link": ("usr/bin/python3",),
    "python-lib": ("usr/lib/python3.13/os.py",),
}
ELF = b"\x7fELF"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a small Debian: merged `/usr`, Python as a package, a library that only the program links."""
    root = tmp_path / "root"
    info = root / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (root / "usr/bin").mkdir(parents=True)
    (root / "bin").symlink_to("usr/bin")
    for package, files in PACKAGES.items():
        terms = f"usr/share/doc/{package}/copyright"
        for name in (*files, terms):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(package)
        (info / f"{package}.list").write_text(
            "/.\n/usr\n/bin\n" + "".join(f"/{name}\n" for name in (*files, terms))
        )
    shutil.rmtree(root / "usr/share/doc/libz1")
    (root / "usr/share/doc/libz1").symlink_to("gcc-base")
    (root / "usr/bin/python3").unlink()
    (root / "usr/bin/python3").symlink_to("python3.13")
    (root / "usr/bin/su").chmod(0o4755)
    (root / "usr/lib/libz.so.1").write_bytes(ELF)
    program = root / "opt/statewarden/lib/native.so"
    program.parent.mkdir(parents=True)
    program.write_bytes(ELF)
    (root / "tmp").mkdir()
    (root / "tmp/bare.py").touch()
    stanzas = [f"Package: {package}\nStatus: install ok installed\n" for package in PACKAGES]
    (root / "var/lib/dpkg/status").write_text("\n".join(stanzas))
    (root / "usr/share/doc/statewarden").mkdir()
    (root / "usr/share/doc/statewarden/LICENSE").touch()
    linked = {program: {root / "usr/lib/libz.so.1"}}
    monkeypatch.setattr(bare, "libraries", lambda _, file: linked.get(file, set()))
    return root


def strip(root: Path, image: str) -> list[str]:
    """Strip it and name the packages that are left."""
    trees = (root / "usr/lib/python3.13", root / "opt")
    bare.strip(bare.Root(root), image, root / "usr/bin/python3", trees)
    return [
        line.removeprefix("Package: ") for line in contents.recorded(root).splitlines() if "Package" in line
    ]


def test_the_agent_keeps_no_program_but_python(root: Path) -> None:
    packages = strip(root, "agent")
    assert packages == ["base-files", "libz1", "gcc-base", "python-bin", "python-link", "python-lib"]
    assert sorted(path.name for path in (root / "usr/bin").iterdir()) == ["python3", "python3.13"]
    assert (root / "bin").readlink() == Path("usr/bin")
    assert (root / "usr/bin/python3").resolve().read_text() == "python-bin"
    assert contents.strays(root, "agent") == []
    assert not (root / "usr/share/doc/apt").exists()
    assert list((root / "tmp").iterdir()) == []


def test_the_rollup_keeps_its_shell(root: Path) -> None:
    packages = strip(root, "rollup")
    assert {"bash", "dash"} <= set(packages)
    assert (root / "bin/sh").exists()
    assert contents.strays(root, "rollup") == []
    assert "/bin/sh: a program of the build" in contents.strays(root, "agent")


def test_an_image_that_was_not_stripped_is_refused(root: Path) -> None:
    """Each kind of stray is found: the checks of a built image can fail."""
    (root / "opt/open").touch()
    (root / "opt/open").chmod(0o666)
    (root / "opt/timed.pyc").write_bytes(bytes(16))
    pip = root / "opt/statewarden/lib/site-packages/pip"
    pip.mkdir(parents=True)
    (root / "usr/share/doc/statewarden/LICENSE").unlink()
    (root / "usr/share/doc/login/copyright").unlink()
    assert contents.strays(root, "agent") == [
        "/bin/apt: a program of the build",
        "/bin/bash: a program of the build",
        "/bin/sh: a program of the build",
        "/bin/su: a program of the build",
        "/opt/open: every user may write it",
        "/opt/statewarden/lib/site-packages/pip: of the build",
        "/opt/timed.pyc: byte code that is bound to a time",
        "/usr/bin/apt: a program of the build",
        "/usr/bin/bash: a program of the build",
        "/usr/bin/sh: a program of the build",
        "/usr/bin/su: a program of the build",
        "/usr/bin/su: runs as its owner or group",
        "login: no licence text",
        "statewarden: no licence text",
    ]


def test_libraries_are_those_that_the_loader_finds() -> None:
    """The interpreter of this test is linked with the C library."""
    import sys

    found = bare.libraries(Path("/"), Path(sys.executable).resolve())
    assert any(path.name.startswith("libc.so") for path in found)
