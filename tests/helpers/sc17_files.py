"""The three files of SC'17's artifact: a workload, machines and a profile, of one job and one machine made up here."""

import json
from pathlib import Path
from typing import Any

JOB = {"id": 0, "arrival": 1.5, "gpus": 2, "type": "bvlc_net", "size": "4", "minimal_utility": 0.4, "time": 9}
MACHINE = {
    "sockets": ["00", "01"],
    "core_per_socket": [6, 6],
    "mem_per_socket": [256, 256],
    "gpu_per_socket": [1, 1],
    "mem_per_gpu": [16, 16],
    "gpu_distance": {"0": {"0": 0, "1": 20}, "1": {"0": 20, "1": 0}},
}


def alone(**times: dict[str, float]) -> dict[str, Any]:
    """Return seconds of a step alone, by ``on1``, ``on2`` ...: the number of GPUs."""
    return {"bvlc_net": {"4": {"num_gpus": {number.removeprefix("on"): row for number, row in times.items()}}}}


def beside(seconds: float) -> dict[str, Any]:
    """Return seconds of a step on two GPUs, beside another job of the same kind on two."""
    other = {"bvlc_net": {"4": {"num_gpus": {"2": seconds, "1": 0}}}}
    return {"bvlc_net": {"4": {"num_gpus": {"2": other, "1": {}}}}}


PROFILE = {
    "solo": alone(on1={"intra-socket": 10.0, "inter-socket": 0}, on2={"intra-socket": 20.0, "inter-socket": 25.0}),
    "collocation": beside(30.0),
}


def write_files(folder: Path, job: Any = JOB, machine: Any = MACHINE, profile: Any = PROFILE) -> tuple[Path, ...]:
    """Write the three files, and return their paths as `placeopt.formats.read_sc17` takes them."""
    contents = {"workload": {"0": job}, "infra": {"machines": {"0": machine}}, "profile": profile}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return tuple(folder / f"{name}.json" for name in contents)
