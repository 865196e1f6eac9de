"""The reader of SC'17's artifact, on files of its form made up here."""

import json
from pathlib import Path
from typing import Any

import pytest

from placeopt import BadInput
from placeopt.formats import read_sc17, read_sc17_times

JOB = {"id": 0, "arrival": 1.5, "gpus": 2, "type": "bvlc_net", "size": "4", "minimal_utility": 0.4, "time": 9}
MACHINE = {
    "sockets": ["00", "01"],
    "core_per_socket": [6, 6],
    "mem_per_socket": [256, 256],
    "gpu_per_socket": [1, 1],
    "mem_per_gpu": [16, 16],
    "gpu_distance": {"0": {"0": 0, "1": 20}, "1": {"0": 20, "1": 0}},
}
PROFILE: dict[str, Any] = {
    "solo": {
        "bvlc_net": {
            "4": {
                "num_gpus": {
                    "1": {"intra-socket": 10.0, "inter-socket": 0},
                    "2": {"intra-socket": 20.0, "inter-socket": 25.0},
                }
            }
        }
    },
    "collocation": {
        "bvlc_net": {"4": {"num_gpus": {"2": {"bvlc_net": {"4": {"num_gpus": {"2": 30.0, "1": 0}}}}, "1": {}}}}
    },
}


def files(folder: Path, job: dict[str, Any] = JOB, profile: dict[str, Any] = PROFILE) -> tuple[Path, Path, Path]:
    """Write the three files."""
    contents = {"workload": {"0": job}, "infra": {"machines": {"0": MACHINE}}, "profile": profile}
    for name, content in contents.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder / "workload.json", folder / "infra.json", folder / "profile.json"


def test_what_becomes_of_each_field(tmp_path: Path) -> None:
    """Times in ms, excesses over the time in a socket in thousandths, thresholds in thousandths."""
    scenario = read_sc17(*files(tmp_path), machines=3)
    assert scenario.name == "sc17-workload"
    assert len(scenario.cluster.nodes) == 3
    assert scenario.cluster.machines[0].gpu_distance_matrix == ((0, 20), (20, 0))
    job = scenario.arrivals[0].job
    assert (job.arrival_ms, job.profile, job.utility_min_thousandths) == (1500, "net-4-2", 400)
    assert (job.options[0].demand.gpus, job.options[0].run_time_ms, job.options[0].value) == (2, 20_000, 2000)
    assert job.communication.spread_slowdown_thousandths == 250
    assert [(s.profile, s.beside, s.socket_thousandths) for s in scenario.slowdowns] == [("net-4-2", "net-4-2", 500)]
    assert (scenario.physics.rule, scenario.physics.step_ms) == ("sc17", 1100)


def test_what_was_not_measured_is_counted(tmp_path: Path) -> None:
    """Times of 0 beside others, and across sockets, are counted in the note."""
    assert "Not measured" not in read_sc17(*files(tmp_path), machines=1).note
    solo = {"bvlc_net": {"4": {"num_gpus": {"2": {"intra-socket": 20.0, "inter-socket": 0}}}}}
    beside = {"bvlc_net": {"4": {"num_gpus": {"2": {"bvlc_net": {"4": {"num_gpus": {"2": 0, "1": 0}}}}}}}}
    workload, infra, profile = files(tmp_path, profile={"solo": solo, "collocation": beside})
    infra.write_text(json.dumps({"machines": {"0": MACHINE, "1": MACHINE}}))
    note = read_sc17(workload, infra, profile, machines=1).note
    assert "taken for no slowdown: 1 of 1 kinds beside each other" in note
    assert "across sockets, and taken for no slowdown: 1 of 1 kinds" in note
    assert "first machine of 2" in note


def test_files_of_another_form_are_refused(tmp_path: Path) -> None:
    """With the files' names, and what is missing."""
    with pytest.raises(
        BadInput, match=r"^[^ ]*workload.json: expected the workload of SC'17's artifact: it has no 'gpus'"
    ):
        read_sc17(*files(tmp_path, {k: v for k, v in JOB.items() if k != "gpus"}), machines=1)
    with pytest.raises(BadInput, match=r"job .*: the profile has no times of 'net-9-2'"):
        read_sc17(*files(tmp_path, {**JOB, "size": "9"}), machines=1)
    workload, infra, profile = files(tmp_path)
    text = infra.read_text()
    for other in ("{}", '{"machines": {}}'):
        infra.write_text(other)
        with pytest.raises(BadInput, match=r"^[^ ]*infra[^ ]*.json: expected the infrastructure of SC'17's artifact"):
            read_sc17(workload, infra, profile, machines=1)
    infra.write_text(text)
    with pytest.raises(BadInput, match="cannot be read"):
        read_sc17(tmp_path / "none.json", infra, profile, machines=1)
    profile.write_text("[1]")
    with pytest.raises(BadInput, match="expected an object"):
        read_sc17(workload, infra, profile, machines=1)
    for text in ("{", "[" * 100_000):
        profile.write_text(text)
        with pytest.raises(BadInput, match="not JSON"):
            read_sc17(workload, infra, profile, machines=1)


@pytest.mark.parametrize("arrival", [float("inf"), float("nan"), "1", None])
def test_times_that_are_none_are_refused(tmp_path: Path, arrival: object) -> None:
    """JSON as Python reads it has infinities, which cannot be milliseconds."""
    with pytest.raises(BadInput, match="expected the workload of SC'17's artifact"):
        read_sc17(*files(tmp_path, {**JOB, "arrival": arrival}), machines=1)


@pytest.mark.parametrize("seconds", [0, float("inf")])
def test_profiles_without_times_are_refused(tmp_path: Path, seconds: float) -> None:
    """Nothing takes no time, or for ever, in a socket."""
    solo = {"bvlc_net": {"4": {"num_gpus": {"2": {"intra-socket": seconds, "inter-socket": 25.0}}}}}
    with pytest.raises(BadInput, match="expected the profile of SC'17's artifact"):
        read_sc17(*files(tmp_path, profile={**PROFILE, "solo": solo}), machines=1)


def test_a_machine_of_another_form_is_refused(tmp_path: Path) -> None:
    """Its list of GPU memories is empty."""
    workload, infra, profile = files(tmp_path)
    infra.write_text(json.dumps({"machines": {"0": {**MACHINE, "mem_per_gpu": []}}}))
    with pytest.raises(BadInput, match="list index out of range"):
        read_sc17(workload, infra, profile, machines=1)


def test_a_value_that_is_no_time_is_named_with_its_place(tmp_path: Path) -> None:
    """`prof_from_experiments2.json` has objects where times beside other jobs should be."""
    profile = files(tmp_path)[2]
    text = json.loads(profile.read_text())
    text["collocation"] = {
        "net": {"4": {"num_gpus": {"1": {"net": {"64": {"num_gpus": {"2": {"intra-socket": 109.4}}}}}}}}
    }
    profile.write_text(json.dumps(text))
    place = r"collocation\.net\.4\.num_gpus\.1\.net\.64\.num_gpus\.2: an object, expected seconds"
    with pytest.raises(BadInput, match=rf"profile.json: expected the profile of SC'17's artifact: {place}$"):
        read_sc17_times(profile)
