"""Options out of range: a message that names the option or the field, never an internal fault."""

from pathlib import Path

import pytest

from helpers.command_line import GANGS, INSTANCES, Cli, said

HUGE = 2**63
TOPO = INSTANCES / "topo" / "dgx1-topo-m.txt"
TRACE = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-01 10:00:00,60,1,60,a
2017-10-02 10:00:00,60,1,60,a
"""


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("whatif", "fit", GANGS, "--job", "1", "--cpu", "-1"), 2, ("--cpu: -1", "at least 0")),
        (("whatif", "fit", GANGS, "--job", "1", "--memory", HUGE), 2, ("--memory: ", "at most")),
        (("whatif", "sweep", GANGS, "--vary", "demand=80", "--jobs", HUGE), 2, ("--jobs", "1 to 4096")),
        (("bench", "check", "none", "--jobs", HUGE), 2, ("--jobs", "1 to 4096")),
        (("bench", "papers", "--out", "none", "--jobs", HUGE), 2, ("--jobs", "1 to 4096")),
        (("whatif", "swap", GANGS, "--of", "x", "--by", "a b"), 2, ("no machine type 'x'", "gangs-4gpu")),
        (("import", "topo", TOPO, "--out", "-", "--gpu-memory-mib", HUGE), 3, (TOPO.name, "gpu: memory_mib")),
    ],
    ids=lambda value: " ".join(map(str, value[:2])) if isinstance(value, tuple) else None,
)
def test_numbers_out_of_range(cli: Cli, command: tuple[object, ...], code: int, words: tuple[str, ...]) -> None:
    """Each of them reached a record or the system as it was, and ended as a fault of placeopt."""
    said(cli(*command), code, *words)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--from-day", HUGE, ("100,000",)),
        ("--from-day", 99_999_999, ("100,000",)),
        ("--days", HUGE, ("100,000",)),
        ("--load", 1e-320, ("0.001 to 10",)),
        ("--load", "nan", ("0.001 to 10",)),
        ("--prediction-error", "nan", ("0 to 5",)),
        ("--prediction-error", 1e308, ("0 to 5",)),
    ],
)
def test_windows_and_errors_of_philly(
    cli: Cli, tmp_path: Path, option: str, value: object, words: tuple[str, ...]
) -> None:
    """Nodes without end, a day that no calendar has, a predicted run time of infinity."""
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE)
    said(
        cli("import", "philly", "--trace", trace, "--out", tmp_path / "s.json", option, value), 2, f"{option}: ", *words
    )
    assert not (tmp_path / "s.json").exists()
    assert cli("import", "philly", "--trace", trace, "--out", tmp_path / "s.json").code == 0


def test_a_window_that_ends_after_the_calendar(cli: Cli, tmp_path: Path) -> None:
    """A trace of the year 9998 and a thousand days."""
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE.replace("2017", "9998"))
    said(cli("import", "philly", "--trace", trace, "--days", 1000, "--out", "-"), 3, "9999")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2017-10-01T10:00:00+00:00,60,1,60,a", (":4: column", "without a zone")),
        (f"2017-10-01 10:00:00,60,1,60,{'x' * 300}", (":4: column", "virtual cluster")),
        ("9999-12-31 10:00:00,60,1,60,a", ("days", "name a window")),
        ("2017-10-01 10:00:00,9999999999,64,60,a", ("load", "at most 200,000")),
    ],
    ids=["zone", "name", "span", "nodes"],
)
def test_rows_of_philly(cli: Cli, tmp_path: Path, row: str, words: tuple[str, ...]) -> None:
    """Each is well formed, and no scenario can be made of it."""
    trace = tmp_path / "trace.csv"
    trace.write_text(TRACE + row + "\n")
    said(cli("import", "philly", "--trace", trace, "--out", "-"), 3, *words)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,0,bert,1,12\na,1,bert,1,12\n", (":3: column", "unique")),
        (f"{'x' * 300},0,bert,1,12\n", (":2: column", "253")),
    ],
    ids=["twice", "long"],
)
def test_names_of_sia(cli: Cli, tmp_path: Path, rows: str, words: tuple[str, ...]) -> None:
    """What no scenario may hold is told by its line in the file."""
    trace = tmp_path / "workload.csv"
    trace.write_text("name,time,application,num_replicas,batch_size\n" + rows)
    said(cli("import", "sia", "--workload", trace, "--out", "-"), 3, *words)
