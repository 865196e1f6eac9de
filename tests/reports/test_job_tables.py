"""What other readers of tables of jobs got wrong, and inputs of the same kinds."""

import json
from pathlib import Path

import pytest

from placeopt import BadInput
from placeopt.importers import ImportNotes
from placeopt.importers.job_table import TableJob, read_jobs

DATA = Path(__file__).parents[1] / "data" / "reports" / "jobs"
TIMES = "id=job,submit=submit,start=start,end=end,gpus=gpus"
SACCT = "JobID|User|Partition|Submit|Start|End|ElapsedRaw|State|AllocTRES|Timelimit\n"


def hours(jobs: list[TableJob]) -> dict[str, float]:
    return {job.id: (job.duration_ms or 0) / 3_600_000 for job in jobs}


def reasons(notes: ImportNotes) -> dict[str, int]:
    return {reason: len(names) for (_, reason), names in notes.names.items()}


def write(folder: Path, text: str) -> Path:
    (folder / "table.txt").write_text(text)
    return folder / "table.txt"


def test_a_start_of_0_is_not_known() -> None:
    """Of five jobs of the job table of slurmdbd one has all its times."""
    jobs, notes = read_jobs(DATA / "supercloud.csv", "slurmdbd")
    assert hours(jobs) == {"11": 1.0}
    assert reasons(notes) == {"start is 0: not known": 2, "state 1": 1, "it starts before its submission": 1}


def test_a_submission_at_0_among_dates_is_not_known() -> None:
    jobs, notes = read_jobs(DATA / "zero_submit.csv", TIMES)
    assert hours(jobs) == {"b": 1.0}
    assert reasons(notes) == {"submit is 0 in a table of dates: not known": 1, "it starts before its submission": 1}


def test_times_that_count_from_0_begin_there(tmp_path: Path) -> None:
    """A trace of its own clock: the first job is submitted and starts at 0."""
    jobs, notes = read_jobs(write(tmp_path, "job,submit,start,end,gpus\na,0,0,3600,1\nb,60,60,7260,2\n"), TIMES)
    assert hours(jobs) == {"a": 1.0, "b": 2.0}
    assert not notes.names


def test_sacct_states_the_run_time_itself() -> None:
    """When clocks are put back or forward, and when a job is suspended, end - start is another time."""
    jobs, _ = read_jobs(DATA / "sacct_dst.txt", "sacct")
    assert {name: time for name, time in hours(jobs).items() if name <= "104"} == {
        "101": 0.5,
        "102": 3.0,
        "103": 1.0,
        "104": 1.0,
    }


def test_sacct_with_fewer_columns(tmp_path: Path) -> None:
    """Without the run time it is end - start, and the note says what is not there; a submission is needed."""
    text = (
        SACCT
        + "7|a|gpu|2025-01-01T00:00:00|2025-01-01T01:00:00|2025-01-01T03:00:00|9|COMPLETED|gres/gpu=1,node=1|1:00\n"
    )
    shown = [line.split("|") for line in text.splitlines()]
    table = "\n".join("|".join(cell for i, cell in enumerate(row) if i not in (1, 6)) for row in shown)
    jobs, notes = read_jobs(write(tmp_path, table), "sacct")
    assert hours(jobs) == {"7": 2.0}
    assert "the table lacks: Elapsed, ElapsedRaw, User." in notes.text()
    jobs, notes = read_jobs(
        write(tmp_path, table.replace("End", "Elapsed").replace("2025-01-01T03:00:00", "1-00:30:00")), "sacct"
    )
    assert hours(jobs) == {"7": 24.5}
    assert "the table lacks: End, User." in notes.text()
    with pytest.raises(BadInput, match=r"no column for submit: it lacks .*Submit"):
        read_jobs(write(tmp_path, table.replace("Submit", "Queued")), "sacct")
    with pytest.raises(BadInput, match="no column User"):
        read_jobs(write(tmp_path, table), "sacct,user=User")


@pytest.mark.parametrize(
    ("elapsed", "ms"),
    [
        ("05:30", 330_000),
        ("01:02:03", 3_723_000),
        ("2-03:04:05", 183_845_000),
        ("00:00:01.500", 1_500),
        ("1-00", 86_400_000),
        ("2-03:04", 183_840_000),
        ("90", 90_000),
    ],
)
def test_slurm_writes_run_times_in_many_ways(tmp_path: Path, elapsed: str, ms: int) -> None:
    table = "JobID|Submit|Elapsed|State|AllocTRES\n7|2025-01-01T00:00:00|" + elapsed + "|COMPLETED|cpu=1,gres/gpu=1\n"
    (job,), _ = read_jobs(write(tmp_path, table), "sacct")
    assert job.duration_ms == ms


def test_names_of_gpus_are_counted() -> None:
    """Philly's own JSON: four names on either node; a job that never ran is counted."""
    jobs, notes = read_jobs(DATA / "philly_raw.json", "philly")
    assert [(job.id, job.gpus, job.queue) for job in jobs] == [("application_1_1", 8, "ee9e8c")]
    assert hours(jobs) == {"application_1_1": 1.0}
    assert reasons(notes) == {"no start": 1}


@pytest.mark.parametrize("gpus", ["gpu0,gpu1,gpu2", ["gpu0", "gpu1", "gpu2"], [0, 1, 2], [["a", "b"], ["c"]]])
def test_names_of_gpus_in_other_forms(tmp_path: Path, gpus: object) -> None:
    row = {"submit": 0, "took": 60, "gpus": gpus}
    jobs, _ = read_jobs(write(tmp_path, json.dumps([row])), "submit=submit,duration=took,gpus=gpus:count")
    assert jobs[0].gpus == 3


def test_an_id_that_comes_again_years_later_is_another_job() -> None:
    jobs, notes = read_jobs(DATA / "recycled.txt", "sacct")
    assert [(job.id, job.gpus) for job in jobs] == [("500", 4), ("501", 4), ("500-2", 8)]
    assert not notes.names
    assert "other jobs: 1 (500-2)" in notes.text()


def test_ids_with_numbers_behind_them_stay_apart(tmp_path: Path) -> None:
    """A row that repeats both id and submission is the same job; a number that is taken already is passed over."""
    rows = ("a,5,9,9,1", "a-2,6,9,9,1", "a,7,9,9,1", "a,7,9,9,1", "a-2,8,9,9,1", "a,9,9,9,1")
    jobs, notes = read_jobs(write(tmp_path, "job,submit,start,end,gpus\n" + "\n".join(rows)), TIMES)
    assert [(job.id, job.submit_ms) for job in jobs] == [
        ("a", 5000),
        ("a-2", 6000),
        ("a-3", 7000),
        ("a-2-2", 8000),
        ("a-4", 9000),
    ]
    assert reasons(notes) == {"its id and submission stand on an earlier row": 1}


def test_a_time_of_another_form_is_one_reason(tmp_path: Path) -> None:
    """However many rows have one, and each another."""
    rows = "".join(f"2017/10/09 {i},60,1\n" for i in range(100)) + "09.10.2017 08:00,60,1\n"
    table = write(tmp_path, "when,took,gpus\n" + rows)
    jobs, notes = read_jobs(table, 'submit=when:"%d.%m.%Y %H:%M",duration=took,gpus=gpus')
    assert len(jobs) == 1
    assert reasons(notes) == {"submit is not a time of the form '%d.%m.%Y %H:%M'": 100}


def test_openb_as_a_trace(tmp_path: Path) -> None:
    """A share, a CPU pod, several whole GPUs of two models; a share of several GPUs is none."""
    columns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,scheduled_time,deletion_time\n"
    rows = ("a,6000,1024,1,460,,LS,0,0,60", "b,500,2048,0,0,,BE,1,2,62", "c,1,1,4,1000,T4|P100,BE,2,2,62")
    table = write(tmp_path, columns + "\n".join((*rows, "d,1,1,2,460,,BE,2,2,62")))
    jobs, notes = read_jobs(table, "openb")
    assert [(job.id, float(job.gpus), float(job.cpu), job.memory, job.models) for job in jobs] == [
        ("a", 0.46, 6, 1024, ()),
        ("b", 0, 0.5, 2048, ()),
        ("c", 4, 0.001, 1, ("T4", "P100")),
    ]
    assert [name for names in notes.names.values() for name in names] == ["row 5"]
