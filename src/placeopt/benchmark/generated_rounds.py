"""Rounds that generators make when they are needed, kept in a folder under names that say by what they were made."""

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
"""Folder beside the lists in which such rounds are kept."""
SOURCES = ("generators", "model", "topology", "formats")
"""Rooms that what a generator writes depends on."""
DIGITS = 12
_FORM = re.compile(r"([a-z]+)-([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})-s([0-9]{1,18})")


def is_generated_name(name: str) -> bool:
    """Tell whether a name is that of a round to be made, such as ``planted-10000x500x8-s0``."""
    return _FORM.fullmatch(name) is not None


def generated_path(name: str, folder: Path) -> Path:
    """Return the file in which a round of that name is kept, as the generators of this version make it."""
    return folder / MADE / f"{name}~{generators_digest()}.json.gz"


def generate_round(name: str, path: Path) -> None:
    """
    Make a round and keep it; what other versions of the generators have made under this name is taken away.

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
            with contextlib.suppress(OSError):  # somebody else has taken it away, or may not be asked to
                other.unlink()


@cache
def generators_digest() -> str:
    """
    Return what stands for this version of the generators: equal digests make equal rounds.

    It is of the package's version, numpy's (whose streams of random numbers are drawn from), and the sources of all
    rooms that take part, so that a change to a generator is enough, without a release.
    """
    digest = hashlib.sha256(f"{__version__} {version('numpy')}".encode())
    package = Path(__file__).parents[1]
    for room in SOURCES:
        for file in sorted((package / room).rglob("*")):
            if file.suffix in (".py", ".csv"):
                digest.update(f"{file.relative_to(package).as_posix()}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()[:DIGITS]
