"""Tasks that go to dask or ray by a word: the same rows as at home, and messages where that cannot be."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.worker_places import PACKAGES, elsewhere
from made_rounds import generate
from placeopt import BadInput, Unsupported, read_instance, read_scenario, solve_in_parts
from placeopt.benchmark import plan_cases, run_cases
from placeopt.parallel import PLACES, run_parallel, width_of, workers
from placeopt.simulation import Scheduling
from placeopt.simulation.replay import parse_settings
from placeopt.simulation.replay import sweep as replay
from placeopt.whatif import Limits, parse_variation, sweep

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="class")
def width(where: str) -> Iterator[int | None]:
    """Start the workers; processes of ray find this module by their own path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        with workers(where, 2) as width:
            yield width


@elsewhere
class TestTheSameRows:
    """As at home; the workers are started once for all of it."""

    def test_nothing_but_the_context_says_where(self, width: int | None) -> None:
        assert width is None

    def test_of_a_sweep_of_rounds(self, width: int | None) -> None:
        base = read_instance(ROOT / "instances" / "generated" / "uniform-20x4x4-s0.json.gz")
        vary, limits = parse_variation("demand=80-120:10"), Limits(20.0, threads=1)
        at_home = sweep(base, vary, limits=limits)
        away = sweep(base, vary, limits=limits, jobs=width)
        assert [point.setting for point in away.points] == [80, 90, 100, 110, 120]
        assert [(point.setting, point.outcome.value, point.outcome.value_bound) for point in away.points] == [
            (point.setting, point.outcome.value, point.outcome.value_bound) for point in at_home.points
        ]

    def test_of_a_sweep_of_replays(self, width: int | None, tmp_path: Path) -> None:
        world = read_scenario(ROOT / "instances" / "papers" / "sc17-workloads-100.json")
        fcfs = Scheduling(name="fcfs", method="fcfs")
        varied, settings = parse_settings(
            "nodes:minsky=0-2", world, fcfs, policies={}.__getitem__, patches={}.__getitem__
        )
        at_home = replay(varied, settings, "p95_wait", draws=(0, 1))
        away = replay(varied, settings, "p95_wait", draws=(0, 1), jobs=width, rows=tmp_path / "rows.jsonl")
        assert away.spots == at_home.spots
        assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 6

    def test_of_a_benchmark(self, width: int | None, tmp_path: Path) -> None:
        """Rounds and models, their solutions in the same folder; what has a row is not run again."""
        sets = [str(ROOT / "instances" / name) for name in ("hand/minsky-1.json", "gap/gap1-0.gap")]
        plan = plan_cases(sets, ["auto", "fcfs", "highs"], time_limit_s=20, seeds=[0], threads=1)
        at_home = run_cases(plan.cases, tmp_path / "home")
        away = run_cases(plan.cases, tmp_path / "away", jobs=width)
        told = [
            [(r.case.key, r.verdict, r.answer.status, r.answer.objective, r.answer.bound, r.solution) for r in rows]
            for rows in (at_home, away)
        ]
        assert told[0] == told[1]
        assert all((tmp_path / "away" / str(row.solution)).is_file() for row in away)
        assert run_cases(plan.cases, tmp_path / "away") == away

    def test_of_a_round_in_parts(self, width: int | None) -> None:
        round_ = generate("varied", jobs=60, nodes=8, gpus=4, seed=5)

        settings = {"method": "node-patterns", "mend": "node-patterns", "time_limit_s": 120, "deterministic": True}
        at_home, away = (solve_in_parts(round_, parts=4, jobs=jobs, seed=1, **settings) for jobs in (1, width))
        assert at_home.limit != "time"
        assert away.model_dump_json() == at_home.model_dump_json()


def test_here_is_what_it_was() -> None:
    with workers(jobs=3) as width:
        assert width == width_of(width) == 3
        assert sorted(run_parallel(abs, [-1, -2], width, prefer="threads")) == [1, 2]
    assert width_of(None) == 1


@pytest.mark.parametrize("where", ["", "there", "here:8786", "dask:", "Dask"])
def test_an_unknown_place_is_named(where: str) -> None:
    with pytest.raises(BadInput, match="expected here, dask, ray, dask:ADDRESS or ray:ADDRESS"), workers(where, 2):
        pass


@pytest.mark.parametrize("where", PLACES[1:])
def test_without_the_package_there_is_a_way_out(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[where], None)
    with pytest.raises(Unsupported, match=rf"pip install 'placeopt\[{where}\]', or stay here"), workers(where, 2):
        pass


@elsewhere
def test_an_address_without_a_listener(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port of this machine at which nobody listens."""
    monkeypatch.setattr("placeopt.parallel.CONNECT_S", 1.0)
    if where == "ray":  # a pool that is collected late starts it anew, and what runs is taken
        pytest.importorskip("ray").shutdown()
    with pytest.raises(BadInput, match=r"no answer from '127\.0\.0\.1:9'"), workers(f"{where}:127.0.0.1:9", 2):
        pass
