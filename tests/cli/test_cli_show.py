"""``placeopt show``: maps by hand and their folded forms, JSON, CSV, the page, comparisons."""

import json
from pathlib import Path

import pytest

from helpers.command_line import DGX1, GANGS, INSTANCES, MINSKY, Cli, said, saved
from helpers.plans import plan_for
from helpers.scenarios import scenario as cluster_scenario
from helpers.scenarios import timed
from placeopt import solve
from placeopt.build import instance, job, machine, node, running, scenario
from placeopt.documents import loads
from placeopt.model import Domain
from placeopt.scheduling import named_policy
from placeopt.simulation import Arrival
from placeopt.view import View


def lines_of(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_instance_map(cli: Cli, tmp_path: Path) -> None:
    """
    Two nodes of four GPUs in a rack: a job holds GPUs 0 and 1 of the first, another a quarter of its GPU 3.

    The second one is drained; 2.25 GPUs of 8 are held.
    """
    two, quarter = job("two", gpus=2), job("quarter", gpu_milli=250)
    round_ = instance(
        [node("n0", domain="r0"), node("n1", domain="r0", drained=True)],
        [two, quarter, job("waits", workers=2, gpus=4)],
        domains=[Domain(id="r0")],
        running=[running(two, [("n0", [0, 1])]), running(quarter, [("n0", [3])])],
    )
    path = saved(tmp_path / "i.json", round_)
    done = cli("show", path)
    assert done.code == 0
    lines = lines_of(done.out)
    for line in (
        "GPUs 2.25 of 8 held now",
        "r0 2 nodes, 2.25 of 8 GPUs held",
        "n0 AA·b 2.25 of 4",
        "n1 !!!! 0 of 4",
        "A two 2 1",
        "training 2 workers of 4 GPUs 1 0 8",
    ):
        assert line in lines
    view = cli("show", path, "--json").view
    held = [(row[0], row[1], row[4], row[5]) for row in view.table("GPUs").rows]
    assert held[:4] == [("n0", 0, "two", 1000), ("n0", 1, "two", 1000), ("n0", 2, None, 0), ("n0", 3, "quarter", 250)]
    assert held[4] == ("n1", 0, "(drained)", 0)
    assert [view.figure(name) for name in ("jobs waiting", "jobs running", "GPUs", "GPUs held")] == [1, 2, 8, 2250]
    assert view.provenance["instance"]["digest"] == round_.digest


def test_plan_map_and_links(cli: Cli, tmp_path: Path) -> None:
    """Letters by first GPU: capital on whole GPUs, small on a part, a star where two share; two links."""
    jobs = [job("half", gpu_milli=500), job("pair", gpus=2), job("left", gpu_milli=300), job("right", gpu_milli=300)]
    round_ = instance(1, [*jobs, job("late", gpus=4)])
    where = {name: [("n0", gpus)] for name, gpus in (("half", [0]), ("pair", [1, 2]), ("left", [3]), ("right", [3]))}
    path, answer = saved(tmp_path / "i.json", round_), saved(tmp_path / "p.json", plan_for(round_, where))
    done = cli("show", answer, path)
    assert done.code == 0
    lines = lines_of(done.out)
    assert "n0 aBB* 3.1 of 4" in lines
    assert "pair n0 1 2 1 default new 1 x HOST 2" in lines
    assert "half n0 0 (0.5) 1 default new -" in lines
    view = cli("show", answer, path, "--json").view
    assert [row[5] for row in view.table("GPUs").rows] == [500, 1000, 1000, 600]
    assert view.table("GPUs").rows[3][4:] == ("(several jobs)", 600, "left 0.3, right 0.3")
    ((_, why, count, example),) = view.table("Waiting jobs").rows
    assert (why, count, example) == ("no room", 1, "late")
    assert [row[0] for row in view.table("Placed jobs").rows] == ["half", "pair", "left", "right"]
    assert (view.figure("jobs placed"), view.figure("jobs waiting")) == (4, 1)


def test_a_plan_without_its_round_has_no_map(cli: Cli, tmp_path: Path, minsky_plan: Path) -> None:
    """Value, costs and who waits stand in the plan itself."""
    alone, beside = (cli("show", minsky_plan, *more, "--json").view for more in ((), (MINSKY,)))
    assert alone.figures == beside.figures
    mapped = {"GPUs", "Nodes", "Placed jobs"}
    assert (alone.chart, mapped & {table.name for table in alone.tables}) == (None, set())
    assert mapped | {table.name for table in alone.tables} == {table.name for table in beside.tables}


def test_one_machine_is_drawn_with_its_links(cli: Cli, tmp_path: Path) -> None:
    """The picture and the map use the same letters."""
    out = tmp_path / "plan.json"
    assert cli("solve", DGX1, "--out", out, "--quiet").code == 0
    done = cli("show", out, DGX1)
    assert "NV2" in done.out
    rows = {line.split()[1]: line.split()[0] for line in done.out.splitlines() if len(line.split()) > 3}
    pictured = [line.split(":")[0].split(" = ") for line in done.out.splitlines() if " = " in line and ": GPU" in line]
    assert pictured
    for letter, name in pictured:
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
    done = cli("show", plan, saved(tmp_path / "i.json", round_))
    assert done.out.count("221▄") == 30
    assert "n0  221▄  n1  221▄" in done.out


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_large_clusters_fold(cli: Cli, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """6,212 GPUs in a couple of screens, and no line wider than the terminal."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = cli("show", INSTANCES / "openb" / "openb-default.json.gz").out.splitlines()
    assert len(lines) < (120 if columns == 100 else 250)
    assert max(map(len, lines)) <= columns
    assert "a cell stands for up to" in " ".join(" ".join(lines).split())


def test_folded_density(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand nodes of 4 GPUs, the first half full: half the cells full, half free, 2,000 GPUs free."""
    monkeypatch.setenv("COLUMNS", "100")
    jobs = [job(f"j{i}", gpus=4) for i in range(500)]
    held = [running(made, [(f"n{i}", [0, 1, 2, 3])]) for i, made in enumerate(jobs)]
    done = cli("show", saved(tmp_path / "i.json", instance(1000, jobs, running=held)))
    line = next(line for line in done.out.splitlines() if "█·" in line)
    assert line.split() == ["m", "1,000", "█" * 14 + "·" * 14, "2,000", "4,000", "50.0", "%", "2,000", "500"]


def test_machine_and_cluster(cli: Cli, tmp_path: Path) -> None:
    """The link picture of a machine of its own, and every pair of GPUs as data; a cluster by types of machine."""
    path = tmp_path / "m.json"
    assert cli("import", "topo", INSTANCES / "topo" / "dgx1-topo-m.txt", "--out", path).code == 0
    assert json.loads(path.read_text())["document"] == "machine"
    assert "NVLink, # lanes" in cli("show", path).out
    assert len(cli("show", path, "--json").view.table("Links").rows) == 28
    cluster = saved(tmp_path / "c.json", instance(3, [], machines=[machine(gpus=2)]).cluster)
    view = cli("show", cluster, "--json").view
    assert (view.figure("nodes"), view.figure("GPUs")) == (3, 6)
    assert view.table("Machines").rows[0][:4] == ("m", 3, 0, 2)


def test_scenario(cli: Cli, tmp_path: Path) -> None:
    """
    Two jobs of two GPUs for 5 s each, 10 s apart, and a service, on eight GPUs: 20 of 80 GPU seconds, 25 %.

    All at once there is no time to have a part of.
    """
    jobs = [job(name, gpus=2, run_time_ms=5_000, arrival_ms=at) for name, at in (("a", 0), ("b", 10_000))]
    world = scenario(2, [*jobs, Arrival(job=job("s", gpus=1, run_time_ms=9_000), service=True)], name="w")
    path = saved(tmp_path / "w.json", world)
    assert "w: 3 jobs over 10.0 s; 2 nodes, 8 GPUs" in cli("show", path).words
    view = cli("show", path, "--json").view
    assert (view.figure("load"), view.figure("GPU hours of work")) == (0.25, 20 / 3600)
    assert view.figure("of them without an end") == 1
    assert [row[2:] for row in view.table("Jobs").rows] == [(2, 2000), (1, 1000)]
    saved(path, world.model_copy(update={"arrivals": world.arrivals[:1]}))
    assert "1 job all at once; " in cli("show", path).out


def test_settings_of_a_policy(cli: Cli, tmp_path: Path) -> None:
    path = saved(tmp_path / "p.json", named_policy("fcfs"))
    view = cli("show", path, "--json").view
    assert view.title == "scheduling fcfs"
    assert dict(view.table("Settings").rows)["name"] == "fcfs"


def test_colour_and_its_absence(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Colours only where somebody asks for them; the text is the same without."""
    assert "\x1b" not in cli("show", GANGS).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in cli("show", GANGS).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "38;" not in cli("show", GANGS).out


def test_plans_that_hold_what_is_not_there(cli: Cli, minsky_plan: Path, tmp_path: Path) -> None:
    """A plan edited by hand: a message with the path, not a fault of ours."""
    path = tmp_path / "plan.json"
    path.write_text(minsky_plan.read_text().replace('"node":"node-0"', '"node":"node-9"'))
    said(cli("show", path, MINSKY), 3, "placements[0].assignments[0].node", "'node-9'")
    path.write_text(minsky_plan.read_text().replace('"gpus":{"0":1000}', '"gpus":{"77":1000}'))
    said(cli("show", path, MINSKY), 3, ".gpus", "no GPU 77")


def test_a_page_of_everything(cli: Cli, tmp_path: Path) -> None:
    """By the ending of the file; the plan's round is drawn once, and an answer that --json wrote is drawn again."""
    round_ = instance(2, [job("a"), job("b", gpus=2)])
    files = saved(tmp_path / "round.json", round_), saved(tmp_path / "plan.json", solve(round_))
    stored, out = tmp_path / "view.json", tmp_path / "r.html"
    assert cli("show", *files, "--json", "--out", stored).code == 0
    done = cli("show", *files, stored, "--out", out)
    assert (done.code, done.out) == (0, f"2 views\nwritten to {out}\n")
    data = out.read_text(encoding="utf-8").split('type="application/json">')[1].split("</script>")[0]
    first, second = (View.model_validate(view) for view in json.loads(data))
    assert first == second == loads(View, stored.read_text())


def test_csv(cli: Cli, minsky_plan: Path) -> None:
    """One table after the other under its name, numbers as they are."""
    lines = cli("show", minsky_plan, MINSKY, "--as", "csv").out.splitlines()
    assert lines[:2] == ["Objective", "level,reached,bound,gap (fraction),remark"]
    assert "node,GPU,domain,machine,job,held (gpu_milli),shares" in lines


def test_logs_of_simulations(cli: Cli, tmp_path: Path) -> None:
    """The folder of a simulation: policies, then who waits and holds GPUs; with the scenario slots and slowdowns."""
    world = saved(tmp_path / "w.json", cluster_scenario([timed("huge", 0, 1000, gpus=5), timed("a", 0, 1000)]))
    runs = tmp_path / "runs"
    assert cli("simulate", world, "--policy", "best-fit", "--out", runs, "--quiet").code == 0
    views = [View.model_validate(view) for view in json.loads(cli("show", runs, world, "--json").out)]
    titles = [view.title for view in views]
    assert titles[0].endswith(": 2 jobs, 4 GPUs")
    assert titles[-1] == "Jobs by GPU: best-fit"
    assert {"Jobs waiting over time", "Slots of 2 idle GPUs on one node, over time"} <= set(titles)
    by_title = dict(zip(titles, views, strict=True))
    assert by_title["Waiting"].table("Points").rows == (("best-fit", 0.0, 0.5),)
    assert by_title["Slowdown with waiting"].table("Points").rows == (("best-fit", 1.0, 1.0),)
    text = cli("show", runs, world)
    assert "huge: finds no place on the idle cluster" in text.words
    assert "drawn on the page, with --out FILE.html: Jobs waiting over time" in text.words
    said(cli("show", tmp_path), 3, "no logs of simulations")


def test_two_answers_are_compared(cli: Cli, tmp_path: Path) -> None:
    """Simulations of more and fewer jobs: figures that are worse are named, and those of one side counted."""
    jobs = [timed(name, at, 60_000, gpus=gpus) for name, at, gpus in (("a", 0, 3), ("b", 1000, 4), ("c", 2000, 1))]
    for folder, arrivals in (("before", jobs), ("after", jobs[:2])):
        world = saved(tmp_path / "w.json", cluster_scenario(arrivals))
        done = cli("simulate", world, "--policy", "fcfs,best-fit", "--out", tmp_path / folder, "--quiet")
        assert done.code == 0, done
    both = tmp_path / "before", tmp_path / "after"
    view = cli("show", *both, "--compare", "--json").view
    changed = {row[:2]: row[2:] for row in view.table("What changed").rows}
    assert changed["Policies: fcfs", "ended"] == ("3", "2", "-33.3 %", "worse")
    assert view.verdict == "bad"
    assert cli("show", both[0], both[0], "--compare", "--json").view.table("What changed").rows == ()
    assert cli("show", *both, "--compare", "--out", tmp_path / "c.html").out.startswith("3 views\n")
    said(cli("show", both[0], "--compare"), 2, "--compare: 1 answer", "expected two")
    policy = saved(tmp_path / "p.json", named_policy("fcfs"))
    said(cli("show", MINSKY, policy, "--compare"), 3, "nothing to compare")


def test_what_a_file_is_must_be_stated(cli: Cli, tmp_path: Path) -> None:
    """No guess by keys: a file without a kind is refused with what to write, one of another kind with what it is."""
    text = json.loads(MINSKY.read_text())
    path = tmp_path / "x.json"
    path.write_text(json.dumps({name: value for name, value in text.items() if name != "document"}))
    said(cli("show", path), 3, "does not state what it is", 'write "document": "round" or "plan"')
    path.write_text(json.dumps(text | {"document": "predictor"}))
    said(cli("show", path), 3, "document: 'predictor', expected")
    path.write_text(json.dumps([text, 3]))
    said(cli("show", path), 3, "[1]: not an object")
