"""``placeopt import jobs``: published forms by their columns alone, other files by columns named here."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.command_line import EXAMPLES, Cli, said
from placeopt import read_scenario
from placeopt.simulation import Arrival

JOBS = Path(__file__).resolve().parents[1] / "data" / "jobs"
FILES = {path.name: path for path in (*EXAMPLES.glob("*.csv"), *JOBS.iterdir())}
GOOGLE = "google,cpu=resource_request.cpus*64,memory=resource_request.memory*256:GiB"
Reads = Callable[..., list[tuple[object, ...]]]
FORMS = {
    "itp.csv": ("itp", "3x8xA100", 6, 2),
    "helios.csv": ("helios", "3x8xV100:96:512", 5, 1),
    "dlrm.csv": ("dlrm", "2x8xA10:128:1024", 3, 2),
    "spot.csv": ("spot", "3x8xA100:192:1024,2x4xA10:128:512", 4, 0),
    "sacct.txt": ("sacct", "3x8xa100:128:1024", 4, 2),
    "kubernetes.json": ("kubernetes", "1x8xH100:96:1024", 3, 1),
    "google.jsonl": (GOOGLE, "4x0:64:256", 2, 2),
}
POLICIES = "fcfs,best-fit,srtf,placeopt"


def shape(arrival: Arrival) -> tuple[object, ...]:
    """Arrival and run time in seconds, workers, and of each GPUs, cores and GiB."""
    option = arrival.job.options[0]
    demand = option.demand
    return (
        arrival.job.arrival_ms / 1000,
        (arrival.actual_run_time_ms or 0) / 1000,
        option.workers,
        demand.gpus * demand.gpu_milli / 1000,
        demand.cpu_millicores / 1000,
        demand.memory_mib / 1024,
    )


@pytest.fixture
def read(cli: Cli, tmp_path: Path) -> Reads:
    def call(path: Path, columns: str, nodes: str) -> list[tuple[object, ...]]:
        out = tmp_path / f"{path.name}.json"
        done = cli("import", "jobs", path, "--columns", columns, "--nodes", nodes, "--out", out)
        assert done.code == 0, done
        return [shape(arrival) for arrival in read_scenario(out).arrivals]

    return call


@pytest.mark.parametrize("file", FORMS)
def test_published_forms_by_columns_alone(cli: Cli, read: Reads, tmp_path: Path, file: str) -> None:
    """Imported, packed or not, and simulated under four policies; every row is a job or counted."""
    columns, nodes, jobs, left = FORMS[file]
    out = tmp_path / "made.json"
    done = cli("import", "jobs", FILES[file], "--columns", columns, "--nodes", nodes, "--out", out)
    made = [shape(arrival) for arrival in read_scenario(out).arrivals]
    assert (done.code, len(made)) == (0, jobs)
    assert f"; {left} left out" in done.out
    assert (
        sum(int(line.split(": ")[1].split()[0]) for line in done.err.splitlines() if line.startswith("Left out"))
        == left
    )
    packed = tmp_path / (file + ".gz")
    packed.write_bytes(gzip.compress((FILES[file]).read_bytes()))
    assert read(packed, columns, nodes) == made
    view = cli("simulate", out, "--policy", POLICIES, "--estimates", "actual", "--json").view
    assert [row[:2] for row in view.table("Policies").rows] == [(name, jobs) for name in POLICIES.split(",")]


def test_forms_by_hand(read: Reads, tmp_path: Path) -> None:
    shapes = {file: read(FILES[file], columns, nodes) for file, (columns, nodes, _, _) in FORMS.items()}
    assert shapes["helios.csv"][1] == (60, 1800, 2, 8, 64, 0)  # 16 GPUs and 128 cores on two nodes
    assert shapes["itp.csv"][2:5] == [(120, 7200, 2, 8, 0, 0), (180, 600, 1, 1, 0, 0), (240, 900, 12, 1, 0, 0)]
    assert shapes["dlrm.csv"] == [(0, 4000, 1, 1, 12, 120), (50, 800, 1, 0, 64, 320), (100, 2000, 1, 2, 16, 160.5)]
    assert shapes["spot.csv"][1] == (600, 4100, 16, 1, 15, 0)  # of each worker
    assert shapes["sacct.txt"][1] == (60, 1800, 2, 8, 64, 512)
    assert shapes["kubernetes.json"] == [(0, 2400, 1, 4, 16, 128), (300, 600, 1, 8, 0.5, 0.5), (720, 300, 1, 0, 2, 8)]
    assert shapes["google.jsonl"] == [(0, 600, 1, 0, 16, 32), (60, 300.5, 1, 0, 32, 16)]
    limits = [arrival.job.options[0].run_time_ms for arrival in read_scenario(tmp_path / "sacct.txt.json").arrivals]
    assert limits == [86_400_000, 7_200_000, 3_600_000, None]  # UNLIMITED states none


def test_forms_of_values(cli: Cli, tmp_path: Path) -> None:
    """Units, factors, quoted names, conditions and separators; what cannot be read is counted, never guessed."""
    table = tmp_path / "t.csv"
    table.write_text(
        '"Submit, UTC";took;plan_gpu;ram;who\n'
        "1700000000000;1-02:03:04;50;2048;a b\n"
        "1700000060000;10:30;100;1024;x\n"
        "1700000120000;02:00:00.5;250;1;x\n"
        "1700000180000;90;soon;1;x\n"
        "1700000240000;-5;100;1;x\n"
        "oops;90;100;1;x\n"
        "1700000300000;90;100;1;y;z\n"
    )
    columns = 'submit="Submit, UTC":ms,duration=took,gpus=plan_gpu/100,memory=ram:MiB,user=who'
    out = tmp_path / "s.json"
    command = ("import", "jobs", table, "--nodes", "1x4xA100:8:64", "--out", out, "--columns")
    done = cli(*command, columns)
    assert done.code == 0
    made = read_scenario(out).arrivals
    assert [shape(arrival) for arrival in made] == [(0, 93_784, 1, 0.5, 0, 2), (60, 630, 1, 1, 0, 1)]
    assert [arrival.job.user for arrival in made] == ["a b", "x"]
    for reason in (
        "its GPUs are neither whole nor a part of one: 1 (row 4)",
        "gpus is not an amount: 1 (row 5)",
        "it ends before it starts: 1 (row 6)",
        "submit is not a number: 1 (row 7)",
        "the row has more or fewer fields than the header, or is not an object: 1 (row 8)",
    ):
        assert f"Left out, {reason}." in done.err
    said(cli(*command, columns.replace(":ms", "")), 3, "after the year 2286", ":ms")
    only = cli(*command, columns + ",gpus=plan_gpu/100[who:x]")
    assert [arrival.job.user for arrival in read_scenario(out).arrivals] == ["x"]
    assert "asks for neither GPUs nor CPU: 1 (row 2)" in only.err


def test_json_in_all_its_forms(cli: Cli, read: Reads, tmp_path: Path) -> None:
    """Lines, a list, a list in an object: the same jobs."""
    rows = [{"t": 5 * n, "need": {"gpu": n + 1}, "s": 60, "when": "2024-01-01T00:00:00+01:00"} for n in range(3)]
    lines, columns = "\n".join(map(json.dumps, rows)), "submit=t,duration=s:min,gpus=need.gpu"
    path = tmp_path / "rows"
    for text in (lines, json.dumps(rows, indent=1), json.dumps({"kind": "List", "items": rows})):
        path.write_text(text)
        assert read(path, columns, "1x4") == [(5 * n, 3600, 1, n + 1, 0, 0) for n in range(3)]
    path.write_text(lines[:-3])
    said(cli("import", "jobs", path, "--columns", columns, "--nodes", "1x4", "--out", "-"), 3, "line 3", "JSON")


def test_parquet(cli: Cli, read: Reads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same jobs as of the CSV file; without pyarrow a way out is named."""
    pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    path = tmp_path / "h.parquet"
    parquet.write_table(csv.read_csv(EXAMPLES / "helios.csv"), path)
    columns, nodes, *_ = FORMS["helios.csv"]
    assert read(path, columns, nodes) == read(EXAMPLES / "helios.csv", columns, nodes)
    command = ("import", "jobs", path, "--nodes", nodes, "--out", "-", "--columns")
    said(cli(*command, "submit=a,duration=b,gpus=c"), 3, "no column a, b, c")
    path.write_bytes(path.read_bytes()[:-40])
    said(cli(*command, columns), 3, "damaged Parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    said(cli(*command, columns), 3, "placeopt[parquet]", "CSV")


def test_clusters_and_interference(cli: Cli, tmp_path: Path) -> None:
    """A cluster of another file; slowdowns of another file by profile; SC'17's kinds only where asked for."""
    out, other = tmp_path / "o.json", tmp_path / "other.json"
    common = ("import", "jobs", JOBS / "itp.csv", "--columns", "itp")
    assert cli(*common, "--nodes", "2x8xA100", "--interference", "sc17", "--out", other).code == 0
    drawn = read_scenario(other)
    assert len({arrival.job.profile for arrival in drawn.arrivals}) > 1
    assert cli(*common, "--cluster", other, "--out", out).code == 0
    plain = read_scenario(out)
    assert plain.cluster == drawn.cluster
    assert {arrival.job.profile for arrival in plain.arrivals} == {"whole-gpus"}
    assert [(s.gpu_thousandths, s.node_thousandths) for s in plain.slowdowns] == [(1000, 0)]
    named = ("--columns", "itp,profile=job_id", "--interference", other)
    assert cli("import", "jobs", JOBS / "itp.csv", *named, "--cluster", other, "--out", out).code == 0
    assert read_scenario(out).slowdowns == drawn.slowdowns
    said(cli(*common, "--cluster", other, "--interference", other, "--out", out), 2, "profile=COLUMN")


ONE_A_DAY = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "".join(
    f"2017-10-0{day} 00:00:00,3600,8,28800,a\n" for day in range(1, 6)
)
"""A job of 8 GPU hours at midnight on five days."""


def test_a_window_of_days_and_a_load(cli: Cli, tmp_path: Path) -> None:
    """Three of the jobs; on two nodes of 8 GPUs, 24 GPU hours are half of what there is within 3 hours."""
    table, out = tmp_path / "p.csv", tmp_path / "p.json"
    table.write_text(ONE_A_DAY)
    command = ("import", "jobs", table, "--columns", "philly-csv", "--nodes", "2x8", "--out", out)
    assert cli(*command, "--from-day", 1, "--days", 3).code == 0
    day = 86_400_000
    assert [arrival.job.arrival_ms for arrival in read_scenario(out).arrivals] == [0, day, 2 * day]
    assert cli(*command, "--from-day", 1, "--days", 3, "--load", 0.5).code == 0
    made = read_scenario(out)
    assert [arrival.job.arrival_ms for arrival in made.arrivals] == [0, 5_400_000, 10_800_000]
    assert [arrival.actual_run_time_ms for arrival in made.arrivals] == [3_600_000] * 3
    assert "from day 1, days 3, load 0.5" in made.note
