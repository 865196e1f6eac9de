"""Generated rounds of the sets: made on first use and kept under names that hold the generators' digest."""

from __future__ import annotations

import contextlib
import hashlib
import re
from functools import cache
from importlib.metadata import version
from pathlib import Path

from placeopt import __version__
from placeopt.errors import BadInput
from placeopt.formats.documents import write_instance
from placeopt.formats.files import make_folder
from placeopt.generators import generate

MADE = "made"
"""Folder beside the lists that holds generated rounds."""
SOURCES = ("generators", "model", "topology", "formats")
"""Packages that determine what a generator writes."""
DIGITS = 12
_FORM = re.compile(r"([a-z]+)-([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})-s([0-9]{1,18})")


def is_generated_name(name: str) -> bool:
    """Return whether a name is that of a generated round, such as ``planted-10000x500x8-s0``."""
    return _FORM.fullmatch(name) is not None


def generated_path(name: str, folder: Path) -> Path:
    """Return the path of a generated round as this version of the generators makes it."""
    return folder / MADE / f"{name}~{generators_digest()}.json.gz"


def generate_round(name: str, path: Path) -> None:
    """
    Generate a round and write it; files of the same round by other versions of the generators are deleted.

    Raises
    ------
    BadInput
        If there is no such generator, it refuses the numbers, or the folder cannot be written.
    """
    form = _FORM.fullmatch(name)
    if form is None:
        raise BadInput(f"{name!r}: expected such as planted-10000x500x8-s0: spec, jobs, nodes, GPUs, seed")
    jobs, nodes, gpus, seed = map(int, form.groups()[1:])
    made = generate(form[1], jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)
    make_folder(path.parent)
    write_instance(path, made)
    for other in (*path.parent.glob(f"{name}~*.json.gz"), path.parent / f"{name}.json.gz"):
        if other != path:
            with contextlib.suppress(OSError):  # deleted by another process, or not ours to delete
                other.unlink()


@cache
def generators_digest() -> str:
    """
    Return a digest of this version of the generators: equal digests make equal rounds.

    It covers the versions of placeopt and numpy (whose random streams are used) and the sources of all packages of
    ``SOURCES``, so that a change to a generator changes it without a release.
    """
    digest = hashlib.sha256(f"{__version__} {version('numpy')}".encode())
    package = Path(__file__).parents[1]
    for room in SOURCES:
        for file in sorted((package / room).rglob("*")):
            if file.suffix in (".py", ".csv"):
                digest.update(f"{file.relative_to(package).as_posix()}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:DIGITS]
