"""Mixed-integer models: read as others read them, solved as is known, solutions judged, refused in words."""

import math
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pytest
from test_benchmark_models import model_of

from placeopt import BadInput, Unsupported
from placeopt.benchmark import (
    Known,
    is_equal,
    plan_cases,
    read_model,
    read_solu,
    recheck,
    run_cases,
    score_rows,
    write_solu,
)
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
NAMES = [Path(line).stem for line in (INSTANCES / "mip.test").read_text("utf-8").split()]


def read(name: str) -> Any:
    return read_model(INSTANCES / "mip" / f"{name}.mps")


def infinite(array: np.ndarray, none: int) -> list[float]:
    """Return bounds with infinities for what integers write as a number."""
    sign = -math.inf if none == NO_LOWER else math.inf
    return [sign if value == none else value for value in array.tolist()]


@pytest.mark.parametrize("name", NAMES)
def test_highs_reads_the_same(name: str) -> None:
    highs, model = highspy.Highs(), read(name)
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(INSTANCES / "mip" / f"{name}.mps")) != highspy.HighsStatus.kError
    lp = highs.getLp()
    assert list(lp.col_cost_) == model.objective.tolist()
    assert (list(lp.col_lower_), list(lp.col_upper_)) == (model.lower.tolist(), model.upper.tolist())
    assert list(lp.row_lower_) == infinite(model.row_lower, NO_LOWER)
    assert list(lp.row_upper_) == infinite(model.row_upper, NO_UPPER)
    assert (lp.offset_, lp.sense_ == highspy.ObjSense.kMaximize) == (model.offset, model.sense == "max")
    if not isinstance(model, LinearModel):
        whole = [kind == highspy.HighsVarType.kInteger for kind in lp.integrality_] or [False] * len(model.lower)
        assert whole == model.integer.tolist()


def test_solvers_agree_with_the_known_values(tmp_path: Path) -> None:
    """HiGHS and CBC on all of them, CP-SAT on one that it can take and two that not; a check from the files agrees."""
    solu = INSTANCES / "best.solu"
    settings = {"time_limit_s": 60, "seeds": [1], "threads": 1, "permute": True, "instances": INSTANCES}
    plan = plan_cases(["mip"], ["highs", "pulp-cbc", "cpsat"], **settings)
    some = ("pure-integer", "free-range", "decimal-knapsack")
    cases = [case for case in plan.cases if case.solver != "cpsat" or case.instance in some]
    rows = run_cases(cases, tmp_path, solu=solu)
    verdicts = {(row.case.instance, row.case.solver): row.verdict for row in rows}
    words = {row.case.instance: row.answer.message for row in rows if row.verdict == "unsupported"}
    for name in NAMES:
        assert verdicts[name, "pulp-cbc"] == "ok"
        assert verdicts[name, "highs"] == "ok"
    assert [verdicts[name, "cpsat"] for name in some] == ["ok", "unsupported", "unsupported"]
    assert "'x' is continuous" in words["free-range"]
    assert "objective has decimals" in words["decimal-knapsack"]
    assert {row.case.key for row in rows} == {
        checked.row.case.key for checked in recheck(tmp_path, read_solu(solu)) if not checked.faults
    }
    cases = score_rows(rows)
    assert not cases.gap[cases.supported].any()


def test_solutions_are_judged_with_the_stated_tolerance() -> None:
    """Rows and continuous bounds within the tolerance, integers exactly, the objective as it is."""
    model = read("fixed-charge")
    assert not isinstance(model, LinearModel)
    good = np.array([0.0, 0, 1, 0, 0, 7])

    def moved(column: int, by: float) -> np.ndarray:
        return good + by * (np.arange(6) == column)

    assert model.misfits(good, 26.0) == []
    assert model.misfits(moved(5, -3e-6), 26.0) == []  # 7e-6 is allowed
    assert model.misfits(moved(5, -9e-6), 26.0) == ["row 0 does not hold"]
    assert model.misfits(moved(2, -1e-9), 26.0) == ["variable 2 is 0.999999999, not an integer"]
    assert model.misfits(moved(3, -5e-6), 26.0) == ["variable 3 is -5e-06, outside its bounds"]
    assert model.misfits(good, 25.9) == ["objective is stated as 25.9, but it is 26"]
    assert model.misfits(good[:-1], 26.0) == ["5 values for 6 variables"]
    assert model.misfits(good * math.nan, 26.0) == ["a value is not finite"]


HEAD = "NAME a\nROWS\n N c\n L r\nCOLUMNS\n x c 1 r 1\n y c 1 r 1\n"


@pytest.mark.parametrize(
    ("rest", "error", "words"),
    [
        ("SOS\n S1 SOS s1\n", Unsupported, r"m\.mps:8: section SOS, beyond"),
        ("QUADOBJ\n x x 1\n", Unsupported, "section QUADOBJ"),
        ("QCMATRIX r\n x x 1\n", Unsupported, "section QCMATRIX"),
        ("INDICATORS\n IF r x 1\n", Unsupported, "section INDICATORS"),
        ("BOUNDS\n SC b x 5\n", Unsupported, "semicontinuous variable"),
        (" M 'MARKER' 'SOSORG'\n", Unsupported, "marker SOSORG"),
        ("BOUNDS\n FX b x 1e30\n", BadInput, "no value is left"),
        ("BOUNDS\n LO b x Inf\n", BadInput, "no value is left"),
        ("BOUNDS\n UP b x -Infinity\n", BadInput, "no value is left"),
        ("BOUNDS\n UP b x nan\n", BadInput, "beyond"),
    ],
)
def test_what_is_no_mixed_integer_model_is_refused_in_words(rest: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        model_of(f"{HEAD}{rest}ENDATA\n", "m.mps")


def test_bounds_of_every_kind() -> None:
    """Also infinities in words and in figures, and sides that are none."""
    text = f"{HEAD}RHS\n s r 1e30\nBOUNDS\n LO b x -1e30\n UP b x Inf\n MI b y\n UP b y 4\nENDATA\n"
    model = model_of(text, "m.mps")
    assert not isinstance(model, LinearModel)
    assert model.lower.tolist() == [-math.inf, -math.inf]
    assert model.upper.tolist() == [math.inf, 4.0]
    assert model.row_upper.tolist() == [math.inf]
    assert not model.integer.any()
    below = model_of(f"{HEAD}BOUNDS\n UP b x -1\n LO b y -2\n UP b y -1\nENDATA\n", "m.mps")
    assert below.lower.tolist() == [-math.inf, -2.0]  # an upper bound below 0 removes the unstated lower bound


@pytest.mark.parametrize("solver", ["highs", "pulp-cbc"])
def test_unbounded_is_an_answer(tmp_path: Path, solver: str) -> None:
    path = tmp_path / "open.mps"
    path.write_text(HEAD.replace("x c 1", "x c -1").replace("r 1\n y", "r -1\n y") + "ENDATA\n")
    plan = plan_cases([str(path)], [solver], time_limit_s=20, seeds=[0], threads=1)
    (row,) = run_cases(plan.cases, tmp_path / "out")
    assert (row.answer.status, row.verdict) == ("unbounded", "solved")


def test_known_values_with_reals(tmp_path: Path) -> None:
    """Every kind of line, kept when it is written again; contradictions are refused."""
    path = tmp_path / "a.solu"
    text = "=opt= a 1.5\n=best= b 2e3  # me\n=bound= b 1999.25\n=inf= c\n=unkn= d\n=opt= e -7\n"
    path.write_text(text)
    known = read_solu(path)
    assert known["a"] == Known(1.5, 1.5)
    assert known["c"].infeasible
    assert known["d"] == Known()
    assert isinstance(known["e"].value, int)
    write_solu(tmp_path / "b.solu", known)
    assert read_solu(tmp_path / "b.solu") == known
    for bad in ("=opt= a inf\n", "=opt= a 1_0\n", "=inf= a 3\n", "=inf= a\n=opt= a 3\n", "=opt= a 3\n=inf= a\n"):
        path.write_text(bad)
        with pytest.raises(BadInput, match=r"a\.solu:"):
            read_solu(path)
    with pytest.raises(BadInput, match="called infeasible"):
        known["c"].improved(1, None)
    assert known["a"].improved(1.5000001, None, "max").value == 1.5  # the same within the tolerance
    assert is_equal(10**15, 10**15 + 1) is False  # integers have none
