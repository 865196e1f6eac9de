"""
Files of other programs, and all that is read from them: what reads one of them otherwise shows as a difference.

``PYTHONPATH=tests python tests/importers/test_stored_readings.py`` writes what is read now; look at the difference.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput
from placeopt.importers import read_kubernetes, read_slurm
from placeopt.importers.topo import read_topo
from placeopt.model import Record

TESTS = Path(__file__).resolve().parents[1]
EXAMPLES, STORED = TESTS.parent / "examples", TESTS / "data" / "readings"
HARDWARE = sorted(path for path in (TESTS / "data" / "topo").iterdir() if path.suffix != ".md")
TOGETHER = "superbench"
"""Three files of this name describe one network."""
FILES = {path.stem: [path] for path in HARDWARE if not path.name.startswith(TOGETHER)}
FILES[TOGETHER] = [path for path in HARDWARE if path.name.startswith(TOGETHER)]
SLURM = TESTS / "data" / "snapshots" / "slurm-22.05"


def reading(name: str) -> Any:
    """Return what is read, without defaults, or why it is refused."""
    try:
        if name == "slurm":
            return plain(
                read_slurm(*(EXAMPLES / file for file in ("slurm_nodes.json", "slurm_jobs.json", "topology.conf")))
            )
        if name == "slurm-22.05":
            return plain(read_slurm(SLURM / "nodes.json.gz", SLURM / "jobs.json.gz"))
        if name == "kubernetes":
            return plain(read_kubernetes([EXAMPLES / "kubernetes.json"]))
        return plain(read_topo(FILES[name]))
    except BadInput as error:
        return {"refused": str(error).rpartition("/")[2]}


def plain(found: Any) -> Any:
    """Return a record, or a dataclass of records, as JSON has it."""
    if isinstance(found, Record):
        return found.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    if isinstance(found, tuple | list):
        return [plain(one) for one in found]
    if isinstance(found, dict):
        return {key: plain(one) for key, one in found.items()}
    if isinstance(found, str):
        return found.removeprefix(f"{TESTS.parent}/")
    fields = getattr(found, "__dataclass_fields__", None)
    return found if fields is None else {name: plain(getattr(found, name)) for name in fields}


NAMES = (*FILES, "slurm", "slurm-22.05", "kubernetes")


@pytest.mark.parametrize("name", NAMES)
def test_all_that_is_read(name: str) -> None:
    assert json.loads(json.dumps(reading(name))) == json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))


if __name__ == "__main__":
    for name in NAMES:
        (STORED / f"{name}.json").write_text(json.dumps(reading(name), indent=1) + "\n", encoding="utf-8")
