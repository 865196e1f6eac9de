"""Named sets of instances: lists of GPU rounds, generated ones included, and of linear models, in files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

from placeopt import __version__
from placeopt.benchmark.journal import Kind
from placeopt.documents.documents import write_document
from placeopt.documents.files import as_text, check_lines, make_folder, read_bytes
from placeopt.errors import BadArgument, BadInput
from placeopt.generators import generate

LIST_ENDING = ".test"
ENDINGS: dict[str, Kind] = {".json": "placement", ".mps": "linear", ".gap": "linear", ".dat": "quadratic"}
"""Kind of a file by the ending of its name; ``.gz`` may follow."""
_FILES = (LIST_ENDING, *(f"{ending}{packed}" for ending in ENDINGS for packed in ("", ".gz")))
GENERATED = "generate:"
"""Prefix of an entry for a generated round: ``generate:planted-10000x500x8-s0``."""


MADE = "made"
"""Folder beside the lists that holds generated rounds."""
SOURCES = ("generators", "model", "topology", "documents")
"""Packages that determine what a generator writes."""
DIGITS = 12
_FORM = re.compile(r"([a-z]+)-([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})-s([0-9]{1,18})")


@dataclass(frozen=True)
class SetEntry:
    """
    An instance of a set.

    ``name`` is the file's without its endings, as in ``.solu`` files and reports. ``kind`` ``placement``: a round as
    JSON; ``linear``: a mixed-integer model, as MPS or as a generalised assignment problem; ``quadratic``: a quadratic
    assignment problem in QAPLIB's form. A ``generated`` file is made from its name if it does not exist yet.
    """

    name: str
    path: Path
    kind: Kind
    generated: bool = False

    def there(self) -> Path:
        """Return the path of the file; a generated round that does not exist yet is written first."""
        if self.generated and not os.path.isfile(self.path):
            generate_round(self.name, self.path)
        return self.path

    def sha256(self) -> str:
        """Return the checksum of the decompressed content: equal for runs of the same instance."""
        self.there()
        return hashlib.sha256(read_bytes(self.path)).hexdigest()


def read_sets(names: Iterable[str], folder: str | os.PathLike[str]) -> list[SetEntry]:
    """
    Return the instances of the sets, each once, in the order of the lists.

    ``names`` are lists in ``folder`` (``tiny`` is ``tiny.test``), paths of lists or of single instances, or rounds to
    be generated (``generate:planted-10000x500x8-s0``), which are kept in ``made/`` there.
    """
    entries: dict[str, SetEntry] = {}
    for name in names:
        for item in _items(name, Path(folder)):
            before = entries.setdefault(item.name, item)
            if before.path.resolve() != item.path.resolve():
                raise BadInput(
                    f"{item.path}: named {item.name!r} like {before.path}; names of instances are unique: rename one"
                )
    return list(entries.values())


def known_sets(folder: str | os.PathLike[str]) -> list[str]:
    """Return the names of the lists in a folder, sorted."""
    return sorted(path.stem for path in Path(folder).glob(f"*{LIST_ENDING}"))


def entry_of(path: Path) -> SetEntry:
    """Return the instance in a file."""
    stem = path.name.removesuffix(".gz")
    for ending, kind in ENDINGS.items():
        if stem.endswith(ending):
            if not os.path.isfile(path):
                raise BadInput(f"{path}: no such file")
            return SetEntry(stem.removesuffix(ending), path, kind)
    raise BadInput(f"{path}: no instance by its name; expected an ending of {', '.join(ENDINGS)}, or one with .gz")


def _generated(entry: str, folder: Path) -> SetEntry:
    """Return the set entry of ``generate:...``; the round is not generated yet."""
    name = entry.removeprefix(GENERATED)
    if _FORM.fullmatch(name) is None:
        raise BadInput(
            f"{entry!r}: expected for example {GENERATED}planted-10000x500x8-s0: spec, jobs, nodes, GPUs, seed"
        )
    return SetEntry(name, folder / MADE / f"{name}~{generators_digest()}.json.gz", "placement", generated=True)


def _items(name: str, folder: Path) -> list[SetEntry]:
    if name.startswith(GENERATED):
        return [_generated(name, folder)]
    if name.endswith(LIST_ENDING):
        return _listed(Path(name))
    if any(name.removesuffix(".gz").endswith(ending) for ending in ENDINGS):
        return [entry_of(Path(name))]
    path = folder / f"{name}{LIST_ENDING}"
    meant = [f"{name}{ending}" for ending in _FILES if os.path.isfile(f"{name}{ending}")]
    if meant or (os.sep in name and not os.path.isfile(path)):
        more = (
            f"did you mean {meant[0]}?" if meant else f"instances end in {', '.join(ENDINGS)}, lists in {LIST_ENDING}"
        )
        raise BadInput(f"{name}: no such file; {more}")
    if not os.path.isfile(path):
        there = ", ".join(known_sets(folder)) or f"none; is {str(folder)!r} the folder with the lists?"
        raise BadArgument(f"no set {name!r} in {str(folder)!r}; there are: {there}")
    return _listed(path)


def _listed(path: Path) -> list[SetEntry]:
    """Return the entries of a list: one file per line, relative to the list, or a generated round; ``#`` comments."""
    text = as_text(read_bytes(path), str(path), "a list of files, one a line")
    check_lines(text, str(path))
    items = []
    for number, line in enumerate(text.splitlines(), 1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        try:
            generated = entry.startswith(GENERATED)
            items.append(_generated(entry, path.parent) if generated else entry_of(path.parent / entry))
        except (BadInput, ValueError) as error:  # ValueError: a NUL byte in the name
            raise BadInput(f"{path}:{number}: {error}") from None
    return items


def generate_round(name: str, path: Path) -> None:
    """Generate a round and write it; files of the same round by other versions of the generators are deleted."""
    form = _FORM.fullmatch(name)
    if form is None:
        raise BadInput(f"{name!r}: expected for example planted-10000x500x8-s0: spec, jobs, nodes, GPUs, seed")
    jobs, nodes, gpus, seed = map(int, form.groups()[1:])
    made = generate(form[1], jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)
    make_folder(path.parent)
    write_document(path, made)
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
