"""``placeopt show``: maps worked out by hand, their folded forms, and the same facts as JSON."""

from pathlib import Path

import pytest

from helpers.command_line import DGX1, GANGS, INSTANCES, MINSKY, Cli, said, saved
from helpers.plans import plan_for
from placeopt.build import instance, job, machine, node, running, scenario
from placeopt.model import Domain, Gpu, Part
from placeopt.simulation import Arrival


def test_instance_map(cli: Cli, tmp_path: Path) -> None:
    """
    Two nodes of 2 + 2 GPUs in a rack: a job holds GPUs 0 and 1 of the first, another a quarter of its GPU 3.

    A gap is a change of socket, a quarter is a block of two eighths; 2.25 GPUs of 8 are held.
    """
    sockets = (Part(id="s0", level="socket"), Part(id="s1", level="socket"))
    box = machine(gpus=[Gpu(model="V100", memory_mib=16384, part=f"s{i // 2}") for i in range(4)], parts=sockets)
    two, quarter = job("two", gpus=2), job("quarter", gpu_milli=250)
    round_ = instance(
        [node("n0", domain="r0"), node("n1", domain="r0", drained=True)],
        [two, quarter, job("waits", workers=2, gpus=4)],
        machines=[box],
        domains=[Domain(id="r0")],
        running=[running(two, [("n0", [0, 1])]), running(quarter, [("n0", [3])])],
    )
    path = saved(tmp_path / "i.json", round_)
    done = cli("show", path)
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "GPUs now 2.25 of 8 held, 1 node empty" in lines
    assert "r0 2 nodes, 2.25 of 8 GPUs held" in lines
    assert "n0 ██ ·▂ 2.25 of 4 CPU 0 % memory 0 %" in lines
    assert "n1! ·· ·· 0 of 4 CPU 0 % memory 0 %" in lines
    assert "training 2 workers of 4 GPUs 1 0 8" in lines
    assert "m 2 (1 drained) 4 V100 32 256 GiB" in lines
    facts = cli("show", path, "--json").data
    assert facts["document"] == "instance"
    assert [use["gpu_milli"] for use in facts["use"]] == [[1000, 1000, 0, 250], [0, 0, 0, 0]]
    assert (facts["jobs_waiting"], facts["jobs_running"], facts["gpus"]) == (1, 2, 8)


def test_plan_map_and_links(cli: Cli, tmp_path: Path) -> None:
    """Letters by first GPU: capital on whole GPUs, small on a part, a star where two share; two links told."""
    jobs = [job("half", gpu_milli=500), job("pair", gpus=2), job("left", gpu_milli=300), job("right", gpu_milli=300)]
    round_ = instance(1, [*jobs, job("late", gpus=4)])
    where = {name: [("n0", gpus)] for name, gpus in (("half", [0]), ("pair", [1, 2]), ("left", [3]), ("right", [3]))}
    path, answer = saved(tmp_path / "i.json", round_), saved(tmp_path / "p.json", plan_for(round_, where))
    done = cli("show", answer, "--instance", path)
    assert done.code == 0
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "n0 aBB* 3.1 of 4 CPU 0 % memory 0 %" in lines
    assert "B pair new n0 1 2 1 x HOST; distance 2" in lines
    assert "A half new n0 0 (0.5)" in lines
    facts = cli("show", answer, "--instance", path, "--json").data
    assert facts["document"] == "plan"
    assert facts["use"][0]["gpu_milli"] == [500, 1000, 1000, 600]
    assert facts["waiting"][0]["details"] == [{"detail": "no room", "jobs": 1, "for_example": "late"}]
    assert [place["job"] for place in facts["jobs"]] == ["half", "pair", "left", "right"]


def test_one_machine_is_drawn_with_its_links(cli: Cli, tmp_path: Path) -> None:
    """The picture and the map use the same letters."""
    out = tmp_path / "plan.json"
    assert cli("solve", DGX1, "--out", out, "--quiet").code == 0
    done = cli("show", out, "--instance", DGX1)
    assert "NV2" in done.out
    rows = {line.split()[1]: line.split()[0] for line in done.out.splitlines() if len(line.split()) > 3}
    for line in done.out.splitlines():
        if " = " in line and ": GPU" in line:
            letter, name = line.split(":")[0].split(" = ")
            assert rows[name] == letter


def test_many_jobs_are_drawn_by_size(cli: Cli, tmp_path: Path) -> None:
    """Thirty jobs have no letters: 2 + 1 GPUs and a half on each of thirty nodes, several nodes a row."""
    jobs = [
        made for i in range(30) for made in (job(f"two{i}", gpus=2), job(f"one{i}"), job(f"half{i}", gpu_milli=500))
    ]
    round_ = instance(30, jobs)
    where = {}
    for i in range(30):
        where |= {f"two{i}": [(f"n{i}", [0, 1])], f"one{i}": [(f"n{i}", [2])], f"half{i}": [(f"n{i}", [3])]}
    plan = saved(tmp_path / "p.json", plan_for(round_, where))
    done = cli("show", plan, "--instance", saved(tmp_path / "i.json", round_))
    assert done.out.count("221▄") == 30
    assert "n0  221▄  n1  221▄" in done.out


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_large_clusters_fold(cli: Cli, columns: int) -> None:
    """6,212 GPUs in a couple of screens, and no line wider than asked."""
    done = cli("show", INSTANCES / "openb" / "openb-default.json.gz", "--width", columns)
    lines = done.out.splitlines()
    assert len(lines) < (100 if columns == 100 else 250)
    assert max(map(len, lines)) <= columns
    assert "GPUs by machine type" in done.out


def test_folded_density(cli: Cli, tmp_path: Path) -> None:
    """A thousand nodes of 4 GPUs, the first half full: half the cells full, half free, 2,000 GPUs free."""
    jobs = [job(f"j{i}", gpus=4) for i in range(500)]
    held = [running(made, [(f"n{i}", [0, 1, 2, 3])]) for i, made in enumerate(jobs)]
    done = cli("show", saved(tmp_path / "i.json", instance(1000, jobs, running=held)), "--width", 100)
    line = next(line for line in done.out.splitlines() if "█·" in line)
    assert line.split() == ["m", "1,000", "█" * 14 + "·" * 14, "2,000", "4,000", "50.0", "%", "2,000", "500"]


def test_machine(cli: Cli, tmp_path: Path) -> None:
    """The link picture of a machine of its own, and every pair of GPUs as data."""
    path = tmp_path / "m.json"
    assert cli("import", "topo", INSTANCES / "topo" / "dgx1-topo-m.txt", "--out", path).code == 0
    assert "NVLink, # lanes" in cli("show", path).out
    facts = cli("show", path, "--json").data
    assert facts["document"] == "machine"
    assert len(facts["links"]) == 28


def test_scenario(cli: Cli, tmp_path: Path) -> None:
    """
    Two jobs of two GPUs for 5 s each, 10 s apart, and a service, on eight GPUs: 20 of 80 GPU seconds, 25 %.

    All at once there is no time to have a part of.
    """
    jobs = [job(name, gpus=2, run_time_ms=5_000, arrival_ms=at) for name, at in (("a", 0), ("b", 10_000))]
    world = scenario(2, [*jobs, Arrival(job=job("s", gpus=1, run_time_ms=9_000), service=True)], name="w")
    path = saved(tmp_path / "w.json", world)
    text = cli("show", path).words
    assert "3 jobs, 1 of them without an end over 10.0 s; 2 nodes, 8 GPUs" in text
    assert "25.0 % of the GPUs' time from the first arrival to the last" in text
    facts = cli("show", path, "--json").data
    assert (facts["document"], facts["load"], facts["gpu_hours"]) == ("scenario", 0.25, 20 / 3600)
    assert [(row["jobs"], row["gpu_milli_each"]) for row in facts["job_classes"]] == [(2, 2000), (1, 1000)]
    saved(path, world.model_copy(update={"arrivals": world.arrivals[:1]}))
    assert "1 job all at once; " in cli("show", path).out


def test_colour_and_its_absence(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours only where somebody asks for them; the text is the same without."""
    plain = cli("show", GANGS).out
    assert "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = cli("show", GANGS).out
    assert "\x1b[" in coloured
    assert cli("show", GANGS, "--no-color").out == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert "38;" not in cli("show", GANGS).out


def test_plans_that_hold_what_is_not_there(cli: Cli, minsky_plan: Path, tmp_path: Path) -> None:
    """A plan edited by hand: a message with the path, not a fault of ours."""
    path = tmp_path / "plan.json"
    path.write_text(minsky_plan.read_text().replace('"node":"node-0"', '"node":"node-9"'))
    said(cli("show", path, "--instance", MINSKY), 3, "placements[0].assignments[0].node", "'node-9'")
    path.write_text(minsky_plan.read_text().replace('"gpus":{"0":1000}', '"gpus":{"77":1000}'))
    said(cli("show", path, "--instance", MINSKY), 3, ".gpus", "no GPU 77")
