"""The reader of SC'17's artifact, on files of its form made up here: one job, one machine, one profile."""

import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput
from placeopt_papers.traces.sc17_artifact import read_sc17, read_sc17_times

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
    """Write the three files, and return their paths as `read_sc17` takes them."""
    contents = {"workload": {"0": job}, "infra": {"machines": {"0": machine}}, "profile": profile}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return tuple(folder / f"{name}.json" for name in contents)


def test_what_becomes_of_each_field(tmp_path: Path) -> None:
    """Times in ms, excesses over the time in a socket in thousandths, thresholds in thousandths."""
    scenario = read_sc17(*write_files(tmp_path), machines=3)
    assert (scenario.name, len(scenario.cluster.nodes)) == ("sc17-workload", 3)
    assert scenario.cluster.machines[0].gpu_distance_matrix == ((0, 20), (20, 0))
    job = scenario.arrivals[0].job
    assert (job.arrival_ms, job.profile, job.utility_min_thousandths) == (1500, "net-4-2", 400)
    assert (job.options[0].demand.gpus, job.options[0].run_time_ms, job.options[0].value) == (2, 20_000, 2000)
    assert job.communication.spread_slowdown_thousandths == 250
    assert [(s.profile, s.beside, s.socket_thousandths) for s in scenario.slowdowns] == [("net-4-2", "net-4-2", 500)]
    assert (scenario.physics.rule, scenario.physics.step_ms) == ("sc17", 1100)


def test_what_was_not_measured_is_counted(tmp_path: Path) -> None:
    """Times of 0 beside others, and across sockets, are counted in the note."""
    assert "Not measured" not in read_sc17(*write_files(tmp_path), machines=1).note
    solo = alone(on2={"intra-socket": 20.0, "inter-socket": 0})
    workload, infra, profile = write_files(tmp_path, profile={"solo": solo, "collocation": beside(0)})
    infra.write_text(json.dumps({"machines": {"0": MACHINE, "1": MACHINE}}))
    note = read_sc17(workload, infra, profile, machines=1).note
    assert "taken for no slowdown: 1 of 1 kinds beside each other" in note
    assert "across sockets, and taken for no slowdown: 1 of 1 kinds" in note
    assert "first machine of 2" in note


def in_a_socket(seconds: float) -> dict[str, Any]:
    """Return the profile with this time on two GPUs of one socket."""
    return {**PROFILE, "solo": alone(on2={"intra-socket": seconds, "inter-socket": 25.0})}


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (
            r"^[^ ]*workload.json: expected the workload of SC'17's artifact: it has no 'gpus'",
            {"job": {key: value for key, value in JOB.items() if key != "gpus"}},
        ),
        (r"job .*: the profile has no times of 'net-9-2'", {"job": {**JOB, "size": "9"}}),
        *(  # JSON as Python reads it has infinities, which cannot be milliseconds
            ("expected the workload of SC'17's artifact", {"job": {**JOB, "arrival": arrival}})
            for arrival in (float("inf"), float("nan"), "1", None)
        ),
        ("list index out of range", {"machine": {**MACHINE, "mem_per_gpu": []}}),
        (
            r"^[^ ]*infra.json: expected the infrastructure .*gpu_per_socket: .* of together 1024",
            {"machine": {**MACHINE, "gpu_per_socket": [1, 10**12]}},  # bounded before any GPU is made
        ),
        ("expected the profile of SC'17's artifact", {"profile": in_a_socket(0)}),
        ("expected the profile of SC'17's artifact", {"profile": in_a_socket(float("inf"))}),
        ("expected an object", {"profile": [1]}),
    ],
)
def test_files_of_another_form_are_refused(tmp_path: Path, words: str, changed: dict[str, Any]) -> None:
    """With the files' names, and what is missing."""
    with pytest.raises(BadInput, match=words):
        read_sc17(*write_files(tmp_path, **changed), machines=1)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("infra", "{}", r"^[^ ]*infra[^ ]*.json: expected the infrastructure of SC'17's artifact"),
        ("infra", '{"machines": {}}', r"^[^ ]*infra[^ ]*.json: expected the infrastructure of SC'17's artifact"),
        ("profile", "{", "not JSON"),
        ("profile", "[" * 100_000, "not JSON"),
        ("workload", None, "cannot be read"),
    ],
)
def test_files_that_are_none_are_refused(tmp_path: Path, name: str, text: str | None, words: str) -> None:
    files = write_files(tmp_path)
    path = tmp_path / f"{name}.json"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(BadInput, match=words):
        read_sc17(*files, machines=1)


def test_a_value_that_is_no_time_is_named_with_its_place(tmp_path: Path) -> None:
    """`prof_from_experiments2.json` has objects where times beside other jobs should be."""
    other = {"net": {"64": {"num_gpus": {"2": {"intra-socket": 109.4}}}}}
    profile = {**PROFILE, "collocation": {"net": {"4": {"num_gpus": {"1": other}}}}}
    place = r"collocation\.net\.4\.num_gpus\.1\.net\.64\.num_gpus\.2: .*, expected seconds"
    with pytest.raises(BadInput, match=rf"profile.json: expected the profile of SC'17's artifact: {place}$"):
        read_sc17_times(write_files(tmp_path, profile=profile)[2])
