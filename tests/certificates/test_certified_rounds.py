"""Certificates of values: what `certify` proves, ``tools/verify.py`` verifies from the round alone; nothing false."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import verify
import verify_round
from helpers.brute_force import optimum
from helpers.night import seeds
from made_rounds import generate
from placeopt import Engine, Instance, Plan, read_instance
from placeopt.certificates import certify
from placeopt.documents import dumps
from placeopt.problem import compile_problem
from strategies import odd_rounds, rounds
from wrong_certificates import Json, wrong_certificate

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
STORED = (
    "hand/dgx1-tour.json",
    "generated/gangs-20x16x4-s0.json.gz",
    "generated/fractions-60x8x4-s1.json.gz",
    "hard/defrag-20x8x4-s0.json.gz",
    "hard/preempt-30x8x4-s0.json.gz",
    "hard/parity-16x20x8-s0.json.gz",
)
"""Rounds of gangs and domains, of fractions, of moves, of preemption; the first ones need branches."""


def answers(round_: Instance, certificate: Json) -> list[str]:
    """Return what the checker says of each claim."""
    known = verify_round.Round(json.loads(dumps(round_)), certificate["policy"])
    return [verify.answer(known, claim) for claim in certificate["claims"]]


def claiming(plan: Plan, bound: int) -> Plan:
    """Return a plan that claims another bound on value."""
    return plan.model_copy(update={"levels": (plan.levels[0].model_copy(update={"bound": bound}), *plan.levels[1:])})


def certified(round_: Instance, plan: Plan) -> Json:
    """Return the certificate as it is written."""
    certificate: Json = json.loads(dumps(certify(round_, plan, time_limit_s=20, isolation="thread")))
    return certificate


def best_value(name: str) -> int:
    """Return the value of the best plans of a stored round."""
    words = (line.split() for line in (INSTANCES / "best.solu").read_text(encoding="utf-8").splitlines())
    return next(int(value) for kind, of, value, *_ in words if (kind, of) == ("=opt=", name))


def claimed(plan: Plan) -> int:
    """Return the bound on value that a plan claims."""
    assert plan.levels[0].bound is not None
    return plan.levels[0].bound


@pytest.fixture(scope="module", params=STORED, ids=lambda name: Path(name).name.partition(".")[0])
def proven(request: pytest.FixtureRequest, engine: Engine) -> tuple[Instance, Plan, Json]:
    """A stored round, a quick plan that claims the best value known, and the certificate of that."""
    round_ = read_instance(INSTANCES / request.param)
    plan = claiming(engine.solve(round_, method="stranding", deterministic=True), best_value(round_.name))
    return round_, plan, certified(round_, plan)


def test_values_of_the_library_are_verified(proven: tuple[Instance, Plan, Json]) -> None:
    round_, plan, certificate = proven
    said = answers(round_, certificate)
    assert said[0] == f"verified: claim value, bound {claimed(plan)}"
    conflicts = [unplaced.job for unplaced in plan.unplaced if unplaced.reason == "conflict"]
    assert said[1:] == [f"verified: claim does not fit, job {job}" for job in conflicts]


def test_what_is_worth_more_than_the_claim_is_not_proven(proven: tuple[Instance, Plan, Json]) -> None:
    round_, plan, _ = proven
    claim = certified(round_, claiming(plan, claimed(plan) - 1))["claims"][0]
    assert "proof" not in claim
    assert claim["why"]


@pytest.mark.parametrize("seed", seeds(20))
def test_wrong_certificates_are_refused(proven: tuple[Instance, Plan, Json], seed: int) -> None:
    """A plan of that value exists, so whatever stands in a proof that none is worth as much, it is refused."""
    round_, plan, certificate = proven
    placed = [placed.job for placed in plan.placements]
    running = [(held.job, held.option) for held in round_.running]
    wrong = wrong_certificate(certificate, value=claimed(plan), cost=None, placed=placed, running=running, seed=seed)
    assert answers(round_, wrong)[0].startswith("refused")


@settings(max_examples=settings().max_examples // 4)
@given(round_=st.one_of(rounds(), rounds(changes=True, resources=True), odd_rounds()))
def test_nothing_false_is_verified(engine: Engine, round_: Instance) -> None:
    """By brute force: the best value may be proven, less never; the proof of one is none of the other."""
    best, _, _ = optimum(compile_problem(round_))
    plan = engine.solve(round_, method="stranding", time_limit_s=5, deterministic=True)
    for bound in (best, best - 1):
        certificate = certified(round_, claiming(plan, bound))
        claim = certificate["claims"][0]
        if "proof" in claim and bound < best:
            assert answers(round_, certificate)[0].startswith("refused")
        claim["bound"] = best - 1
        assert not answers(round_, certificate)[0].startswith("verified")


def test_amounts_and_gpus_together_prove_more_than_prices_of_amounts(engine: Engine) -> None:
    """CPU, memory and GPUs all bind; prices of them, GPUs apart, prove no less than 3,900 without branches."""
    round_ = read_instance(INSTANCES / "hard/resources-30x4x4-s0.json.gz")
    plan = claiming(engine.solve(round_, method="stranding", deterministic=True), 3808)
    assert answers(round_, certified(round_, plan)) == ["verified: claim value, bound 3808"]


def test_a_job_with_several_ways_of_one_bundle_runs_in_one_of_them(engine: Engine) -> None:
    """The checker counts the bundles of a job as often as its largest way has them, not as all its ways together."""
    round_ = generate("contention", jobs=6, nodes=4, gpus=4, seed=540265435)
    plan = claiming(engine.solve(round_, method="stranding", deterministic=True), 25_833)
    assert answers(round_, certified(round_, plan))[0] == "verified: claim value, bound 25833"


def test_a_job_that_has_room_is_not_said_to_fit_nowhere(proven: tuple[Instance, Plan, Json]) -> None:
    round_, plan, certificate = proven
    wrong = [{"claim": "does not fit", "job": placed.job, "proof": "counting"} for placed in plan.placements]
    said = answers(round_, {**certificate, "claims": wrong})
    assert [one[:7] for one in said] == ["refused"] * len(plan.placements)


def test_the_command_checks_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], proven: tuple[Instance, Plan, Json]
) -> None:
    round_, _, certificate = proven
    files = [str(tmp_path / "round.json"), str(tmp_path / "certificate.json")]
    Path(files[0]).write_bytes(dumps(round_))
    Path(files[1]).write_text(json.dumps(certificate))
    assert verify.main(files) == 0
    assert capsys.readouterr().out.startswith("verified: claim value")
    certificate["claims"][0]["bound"] -= 1
    Path(files[1]).write_text(json.dumps(certificate))
    assert verify.main(files) == 1
    assert capsys.readouterr().out.startswith("refused: claim value")
    for unread in ("{", "[]", '{"policy": null, "claims": []}', '{"policy":' * 100_000):
        Path(files[1]).write_text(unread)
        assert verify.main(files) == 2
    assert verify.main(files[:1]) == 2


def test_the_checker_knows_the_standard_library_only() -> None:
    """And it is short enough to be read: its round, and what proofs are checked with."""
    files = [INSTANCES.parent / "tools" / name for name in ("verify.py", "verify_round.py")]
    sources = [file.read_text(encoding="utf-8") for file in files]
    imports = [line for one in sources for line in one.splitlines() if line.startswith(("import ", "from "))]
    assert {line.split()[1].partition(".")[0] for line in imports} - sys.stdlib_module_names == {"verify_round"}
    assert sum(len(source.splitlines()) for source in sources) < 800


def test_a_running_job_that_stays_pays_nothing(engine: Engine) -> None:
    """What it holds is not on offer, so that its node is paid nothing for it, and the plan is worth all that it is."""
    round_ = read_instance(INSTANCES / "generated/uniform-20x4x4-s0.json.gz")
    plan = engine.solve(round_, method="stranding", deterministic=True)
    certificate = certified(round_, claiming(plan, best_value(round_.name)))
    assert answers(round_, certificate)[0].startswith("verified")
    claim, running = certificate["claims"][0], [held.job for held in round_.running]
    assert running
    claim["bound"] -= 1000
    for stays in (True, False):
        entry = {"option": "default", "price": 1000 * claim["proof"]["scale"], "stays": stays, "jobs": running}
        wrong = {**claim, "proof": {**claim["proof"], "prices": [*claim["proof"]["prices"], entry]}}
        assert answers(round_, {**certificate, "claims": [wrong]})[0].startswith("refused")
