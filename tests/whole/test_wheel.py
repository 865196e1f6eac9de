"""The wheel holds the package with its files that are not code, and nothing else."""

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    compiler = folder / "cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')  # what it compiles is not run
    compiler.chmod(0o755)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    environment = {**os.environ, "CC": str(compiler)}
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=600, env=environment)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_it_holds_all_files_of_the_package_and_no_others(wheel):
    there = {name for name in wheel.namelist() if ".dist-info/" not in name and not name.endswith(".so")}
    files = (path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    files = (path for path in files if path.suffix != ".so")
    assert there == {path.relative_to(SOURCE).as_posix() for path in files}
    assert {name.split("/")[0] for name in there} == {"placeopt"}
    for name in ("py.typed", "report/page/page.css", "scheduling/policies/fcfs.json"):  # read at run time
        assert wheel.read(f"placeopt/{name}") == (SOURCE / "placeopt" / name).read_bytes()


def test_all_that_has_types_is_compiled_or_nothing(wheel):
    """Modules with C types beside them, and one that they share; none where the build has no Cython or compiler."""
    built = {Path(name).name.split(".")[0] for name in wheel.namelist() if name.endswith(".so")}
    typed = {path.stem for path in (SOURCE / "placeopt").rglob("*.pxd")}
    can_build = bool(find_spec("Cython")) and bool(find_spec("setuptools")) and bool(shutil.which("cc"))
    assert built == (typed | {"_shared"} if can_build else set())
    assert wheel.filename.endswith("-none-any.whl") == (not built)


def test_it_has_the_licence_the_command_and_the_extras(wheel):
    named = {Path(name).name: name for name in wheel.namelist() if ".dist-info/" in name}
    assert "LICENSE" in named
    assert "placeopt = placeopt.cli.__main__:main" in wheel.read(named["entry_points.txt"]).decode()
    stated = wheel.read(named["METADATA"]).decode()
    for extra in ("cli", "serve", "parquet", "kubernetes"):
        assert f"Provides-Extra: {extra}\n" in stated
