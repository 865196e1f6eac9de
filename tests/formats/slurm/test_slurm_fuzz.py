"""Mutated files of Slurm end in a round or in a typed error, never in another exception."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placeopt import PlaceoptError
from placeopt.formats import read_slurm

ROOT = Path(__file__).resolve().parents[3]
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 10**12, 10**30, 2**64 - 2, 0.5, float("inf"), "", "x", "(null)", "9" * 5000),
    *(
        "gpu:4",
        "gres:gpu:4",
        "gres:gpu:99999999",
        "gpu:a:b:c",
        "[",
        "g[1-99999]",
        "cpu=1,mem=1P,node=9",
        "a*2",
        "0-9:0",
    ),
    *("IDLE", "DRAIN", "PENDING", "RUNNING", ["RUNNING", "PENDING"], "None", "[a|b]&", "(" * 2500, "\0\u202e=x"),
    *([], ["x"], [None], {}, {"set": True, "number": 10**15}, {"set": "x"}, {"a": {"b": [1]}}),
    *(["gpu:8(IDX:0-7)"], ["gpu:2(IDX:5-9999999)"]),
)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from paths(inner, (*path, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    """Replace what stands there, if it still does."""
    try:
        for key in path[:-1]:
            value = value[key]
        value[path[-1]] = new
    except (KeyError, IndexError, TypeError):
        return


@pytest.mark.parametrize("files", [("slurm_nodes.json", "slurm_jobs.json"), ("nodes.json.gz", "jobs.json.gz")])
def test_mutated_files(tmp_path: Path, files: tuple[str, str]) -> None:
    """60 pairs of each with one to five places replaced; most are read, because one odd thing stops nothing."""
    folder = ROOT / ("examples" if files[0].endswith(".json") else "tests/data/snapshots/slurm-22.05")
    given = [(folder / name).read_bytes() for name in files]
    documents = [json.loads(gzip.decompress(data) if data.startswith(b"\x1f") else data) for data in given]
    for job in documents[1]["jobs"]:
        for node in (job.get("job_resources") or {}).get("allocated_nodes") or ():
            for socket in node["sockets"].values():
                socket["cores"] = dict(list(socket["cores"].items())[:2])  # dozens of each, all alike
    places = [list(paths(document)) for document in documents]
    rng = random.Random(16)
    read, refused = 0, []
    for _ in range(60):
        changed = copy.deepcopy(documents)
        for _ in range(rng.choice((1, 1, 2, 5))):
            which = int(rng.random() < 0.75)
            put(changed[which], rng.choice(places[which]), copy.deepcopy(rng.choice(ODD)))
        for name, document in zip(("n.json", "j.json"), changed, strict=True):
            (tmp_path / name).write_text(json.dumps(document))
        try:
            read_slurm(tmp_path / "n.json", tmp_path / "j.json")
            read += 1
        except PlaceoptError as error:
            refused.append(str(error))
    assert read >= 30
    assert all(".json" in message for message in refused)
