"""Tasks that go to dask or ray by joblib's configuration: the same rows as at home."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from joblib import parallel_config

from helpers.worker_places import elsewhere
from made_rounds import generate
from placeopt import read_instance, read_scenario, solve_in_parts
from placeopt.benchmark import plan_cases, run_cases
from placeopt.scheduling import Scheduling
from placeopt.simulation.replay import compare as replay
from placeopt.simulation.replay import parse_settings
from placeopt.whatif import Limits, compare, parse_variants

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="class")
def width(where: str) -> Iterator[None]:
    """Start two workers; processes of ray find this module by their own path."""
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        if where == "dask":
            from distributed import Client

            stack.enter_context(Client(n_workers=2, threads_per_worker=1, dashboard_address=None))
        else:
            import ray
            from ray.util.joblib import register_ray

            ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
            stack.callback(ray.shutdown)
            register_ray()
        stack.enter_context(parallel_config(backend=where, n_jobs=2))
        yield None


@elsewhere
class TestTheSameRows:
    """As at home; the workers are started once for all of it. By day rounds, whole and in parts, go there."""

    def test_of_a_comparison_of_rounds(self, width: None) -> None:
        base = read_instance(ROOT / "instances" / "generated" / "uniform-20x4x4-s0.json.gz")
        vary, limits = parse_variants("demand=80-120:10", base), Limits(120.0, threads=1)
        at_home = compare(base, vary, limits=limits)
        away = compare(base, vary, limits=limits, jobs=width)
        assert [one.name for one in away.variants] == ["80", "90", "100", "110", "120"]
        assert [(one.name, one.outcome.value, one.outcome.value_bound) for one in away.variants] == [
            (one.name, one.outcome.value, one.outcome.value_bound) for one in at_home.variants
        ]

    @pytest.mark.night
    def test_of_a_comparison_of_replays(self, width: None, tmp_path: Path) -> None:
        world = read_scenario(ROOT / "instances" / "papers" / "sc17-workloads-100.json")
        fcfs = Scheduling(name="fcfs", method="fcfs")
        varied, settings = parse_settings(
            "nodes:minsky=0-2", world, fcfs, policies={}.__getitem__, patches={}.__getitem__
        )
        at_home = replay(varied, settings, "p95_wait", draws=(0, 1))
        away = replay(varied, settings, "p95_wait", draws=(0, 1), jobs=width, rows=tmp_path / "rows.jsonl")
        assert away.spots == at_home.spots
        assert len((tmp_path / "rows.jsonl").read_text().splitlines()) == 6

    @pytest.mark.night
    def test_of_a_benchmark(self, width: None, tmp_path: Path) -> None:
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

    def test_of_a_round_in_parts(self, width: None) -> None:
        round_ = generate("varied", jobs=60, nodes=8, gpus=4, seed=5)

        settings = {"method": "fillings", "mend": "fillings", "time_limit_s": 120, "deterministic": True}
        at_home, away = (solve_in_parts(round_, parts=4, jobs=jobs, seed=1, **settings) for jobs in (1, width))
        assert at_home.limit != "time"
        assert away.model_dump_json() == at_home.model_dump_json()
