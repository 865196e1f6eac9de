"""``placeopt export``: what is written, solved elsewhere, gives the objective of our plan."""

import subprocess
import warnings
from functools import cache
from pathlib import Path

import highspy
import pulp
import pytest
from ortools.sat import cp_model_pb2
from ortools.sat.python import cp_model

import placeopt
from helpers.command_line import MINSKY, Cli, said, saved
from made_rounds import generate
from placeopt.model import Instance, Plan, Policy

with warnings.catch_warnings(action="ignore"):  # PuLP announces its next version
    CBC = pulp.PULP_CBC_CMD().path
SPECS = ("uniform", "varied", "gangs", "fractions")
ROUNDS = [(spec, seed) for spec in SPECS for seed in range(2)]


@cache
def solved(spec: str, seed: int) -> tuple[Instance, Plan]:
    """A round that is proven in well under its time, and its plan."""
    instance = generate(spec, jobs=5, nodes=2, gpus=4, seed=seed)
    plan = placeopt.solve(instance, method="counts", time_limit_s=20.0)
    assert plan.levels[0].bound == plan.levels[0].objective
    return instance, plan


def by_highs(path: Path) -> float:
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


def by_cbc(path: Path) -> float:
    """Optimum of an MPS file, maximised if the file says so, for CBC does not look."""
    turn = ["-max"] if "\n  MAX\n" in path.read_text() else []
    solution = path.with_suffix(".sol")
    command = [CBC, str(path), *turn, "-preprocess", "off", "-solve", "-solution", str(solution)]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    first = solution.read_text().splitlines()[0]
    assert first.startswith("Optimal")
    return float(first.rsplit(maxsplit=1)[1])


def by_cpsat(path: Path) -> float:
    proto = cp_model_pb2.CpModelProto()
    proto.ParseFromString(path.read_bytes())
    model = cp_model.CpModel()
    model.proto.parse_text_format(str(proto))
    solver = cp_model.CpSolver()
    solver.parameters.catch_sigint_signal = False
    solver.parameters.num_workers = 2
    assert solver.solve(model) == cp_model.OPTIMAL
    return float(solver.objective_value)


@pytest.mark.parametrize(("spec", "seed"), ROUNDS)
def test_value_solved_elsewhere_is_ours(cli: Cli, tmp_path: Path, spec: str, seed: int) -> None:
    """All formats, both formulations, three other readers."""
    instance, plan = solved(spec, seed)
    source = saved(tmp_path / "round.json", instance)
    for formulation in ("counts", "assignment"):
        for form, readers in (("mps", (by_highs, by_cbc)), ("lp", (by_highs,)), ("cp-sat", (by_cpsat,))):
            out = tmp_path / f"model.{form}"
            done = cli("export", source, "--format", form, "--formulation", formulation, "--out", out)
            assert (done.code, done.err) == (0, "")
            assert done.out.startswith("maximise ")
            for read in readers:
                assert read(out) == pytest.approx(plan.levels[0].objective, abs=1e-3), (formulation, form, read)


@pytest.mark.parametrize(("spec", "seed"), ROUNDS)
def test_cost_solved_elsewhere_is_ours(cli: Cli, tmp_path: Path, spec: str, seed: int) -> None:
    """The second level at the optimal value; where every cost is exact, the plan's own number."""
    instance, plan = solved(spec, seed)
    assert len(plan.levels) == 2
    source, out = saved(tmp_path / "round.json", instance), tmp_path / "model.mps"
    assert cli("export", source, "--level", "cost", "--out", out).code == 0
    found = by_highs(out)
    assert found <= plan.levels[1].objective + 1e-3
    if plan.status == "optimal" and not plan.bound_relaxes:
        assert found == pytest.approx(plan.levels[1].objective, abs=1e-3)


def test_to_standard_output(cli: Cli) -> None:
    """The model alone; the words go to standard error."""
    done = cli("export", MINSKY, "--out", "-")
    assert done.out.startswith("NAME        \nOBJSENSE\n  MAX\n")
    assert done.out.endswith("ENDATA\n")
    assert done.err.startswith("maximise ")


def test_refusals_name_a_way_out(cli: Cli, tmp_path: Path) -> None:
    """Too large for one formulation, a value that is not proven."""
    large = generate("uniform", jobs=4000, nodes=300, gpus=8, seed=0)
    source, out = saved(tmp_path / "round.json", large), tmp_path / "model.mps"
    said(cli("export", source, "--formulation", "assignment", "--out", out), 3, "4,000 jobs on", "use 'counts'")
    said(cli("export", source, "--level", "cost", "--time-limit", "0.05", "--out", out), 3, "--time-limit")
    assert not out.exists()


def test_a_scheduling_policy_leaves_the_rounds_own_policy(cli: Cli, tmp_path: Path) -> None:
    """Of whole rounds that state nothing: the model is the instance's, with its limit of one job a GPU."""
    policy = Policy(share_mode="exclusive")
    file = saved(
        tmp_path / "i.json",
        generate("fractions", jobs=9, nodes=2, gpus=2, seed=1).model_copy(update={"policy": policy}),
    )
    models = [tmp_path / name for name in ("own.mps", "rounds.mps", "default.mps")]
    (tmp_path / "default.json").write_text('{"document": "policy"}')
    for model, chosen in zip(
        models, ([], ["--policy", "rounds"], ["--policy", tmp_path / "default.json"]), strict=True
    ):
        assert cli("export", file, "--out", model, *chosen).code == 0
    own, rounds, default = (model.read_bytes() for model in models)
    assert own == rounds != default
