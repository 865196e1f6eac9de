"""Values that once ended a reader; `properties/test_file_readers.py` changes files of all formats at random."""

from pathlib import Path

import pytest

from helpers.mutated_files import formats
from placeopt import PlaceoptError
from placeopt.formats import read_sc17, read_slurm
from placeopt.predict import sia_runs


def test_times_that_no_clock_has(tmp_path: Path) -> None:
    """Slurm's start of 10^12 s is named, or read as if it were not there."""
    examples = Path(__file__).parents[2] / "examples"
    text = (examples / "slurm_jobs.json").read_text()
    messages = []
    for field in ("start_time", "submit_time", "end_time", "time_limit"):
        for value in (10**12, 2**53, 10**30, -1):
            changed = tmp_path / "jobs.json"
            changed.write_text(_with(text, field, value))
            try:
                read_slurm(examples / "slurm_nodes.json", changed)
            except PlaceoptError as error:
                messages.append(str(error))
    assert all("jobs.json" in message for message in messages)


def _with(text: str, field: str, value: int) -> str:
    import json

    document = json.loads(text)
    for job in document["jobs"]:
        if field in job:
            held = job[field]
            job[field] = {**held, "number": value} if isinstance(held, dict) else value
    return json.dumps(document)


def test_counts_that_no_machine_has(tmp_path: Path) -> None:
    """SC'17's list of GPUs per socket is bounded before any GPU is made; a CSV fault is told as such."""
    paths = {one.name: one.files[0] for one in formats(tmp_path)}
    workload, infra, profile = (paths[f"SC'17's {name}"] for name in ("workload", "infrastructure", "profile"))
    infra.write_text(infra.read_text().replace('"gpu_per_socket": [1, 1]', '"gpu_per_socket": [1, 1000000000000]'))
    with pytest.raises(PlaceoptError, match=r"gpu_per_socket: .* of together 1024"):
        read_sc17(workload, infra, profile, machines=1)
    with pytest.raises(PlaceoptError, match="line 1: no CSV"):
        sia_runs("placement,local_bsz,step_time\n1,32\rx,0.1\n")
