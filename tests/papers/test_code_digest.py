"""The digest of the code that decides: what changes it, what does not, and that all that runs is in it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from placeopt.simulation import named_policy
from placeopt_papers import campaign, code_digest
from placeopt_papers.catalogue import EVERY_SETTING
from placeopt_papers.code_digest import bare_code, deciding_modules, module_files
from placeopt_papers.one_at_a_time.protocol import OneAtATime
from placeopt_papers.policies import paper_policy
from placeopt_papers.records import PaperCase

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
WATCHED = (
    PaperCase(setting="sc17-table-1", policy="topo-aware-p", seed=0),
    PaperCase(setting="sc17-artifact-5", policy="sc17-topo-aware", seed=0),
    PaperCase(setting="horus-w-large", policy="horus", seed=0),
    PaperCase(setting="dynamoml-12", policy="dynamoml", seed=0),
    PaperCase(setting="dynamoml-12-lag", policy="k8s-sharing", seed=0),
    PaperCase(setting="genie-5", policy="weighted-fair", seed=0),
    PaperCase(setting="fgd-openb", policy="fgd:points", seed=42),
)
IDLE = {"placeopt.formulations.node_patterns.start_prices"}
"""Of the models: the engine makes an empty store of prices, which no method without models fills."""


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Have digests made of a copy of the code; return its folder."""
    for name, folder in code_digest.PACKAGES.items():
        shutil.copytree(folder, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code_digest, "PACKAGES", {name: tmp_path / name for name in code_digest.PACKAGES})
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    """Let digests be made anew."""
    for made in (code_digest._digest, code_digest._imported):
        made.cache_clear()


def changed(path: Path, old: str, new: str) -> None:
    """Replace one text of a file."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    forget()


def test_a_changed_decision_makes_a_row_stale_a_changed_docstring_does_not(copied: Path) -> None:
    """An order of the queue turned round; and a score, which also decides jobs placed one at a time."""
    of_queue = PaperCase(setting="sc17-table-1", policy="fcfs", seed=0)
    row = campaign.run_case(of_queue, instances=INSTANCES)
    assert row is not None
    assert campaign.is_current(of_queue, row, INSTANCES)
    one_at_a_time = code_digest.code_digest(None)

    orders = copied / "placeopt" / "simulation" / "scheduling" / "queue_orders.py"
    changed(orders, '"""', '"""Another text. ')
    orders.write_text(f"# A comment.\n\n\n{orders.read_text(encoding='utf-8')}", encoding="utf-8")
    forget()
    assert campaign.is_current(of_queue, row, INSTANCES)

    changed(orders, '"fcfs": sorted_by(by_arrival)', '"fcfs": sorted_by(by_arrival_and_completion)')
    assert not campaign.is_current(of_queue, row, INSTANCES)
    assert code_digest.code_digest(None) == one_at_a_time
    changed(copied / "placeopt" / "heuristics" / "scores" / "fit.py", "return ", "return 2 * ")
    assert code_digest.code_digest(None) != one_at_a_time


def test_what_is_imported_counts_without_being_listed(copied: Path) -> None:
    """A new module once something that counts imports it, also inside a function; for types only it does not."""
    scheduling = copied / "placeopt" / "simulation" / "scheduling"
    policy = named_policy("fcfs")
    before = code_digest.code_digest(policy)
    (scheduling / "new_rule.py").write_text("LEAST = 1\n", encoding="utf-8")
    forget()
    assert code_digest.code_digest(policy) == before
    adapt = scheduling / "adapt.py"
    line = "from placeopt.simulation.scheduling.new_rule import LEAST"
    changed(
        adapt,
        "from __future__ import annotations\n",
        f"from __future__ import annotations\nif TYPE_CHECKING:\n    {line}\n",
    )
    assert "placeopt.simulation.scheduling.new_rule" not in deciding_modules(policy)
    adapt.write_text(
        f"{adapt.read_text(encoding='utf-8')}\n\ndef new() -> int:\n    {line}\n    return LEAST\n", encoding="utf-8"
    )
    forget()
    assert "placeopt.simulation.scheduling.new_rule" in deciding_modules(policy)
    first = code_digest.code_digest(policy)
    changed(scheduling / "new_rule.py", "1", "2")
    assert code_digest.code_digest(policy) != first != before


def test_models_and_their_data_count_where_rounds_are_solved(copied: Path) -> None:
    """A formulation, and the sizes that ``auto`` reads; what only tells of results counts for none."""
    solves, places = named_policy("placeopt-jct"), named_policy("topo-aware-p")
    before = code_digest.code_digest(solves), code_digest.code_digest(places)
    changed(copied / "placeopt" / "formulations" / "exact.py", "return ", "return 2 * ")
    assert code_digest.code_digest(solves) != before[0]
    assert code_digest.code_digest(places) == before[1]
    solving = code_digest.code_digest(solves)
    changed(copied / "placeopt" / "solving" / "sizes.json", "{", "{ ")
    assert code_digest.code_digest(solves) != solving
    counted = {module.split(".")[1] for module in deciding_modules(solves) if "." in module}
    assert counted.isdisjoint({"cli", "service", "drivers", "report", "benchmark", "explain", "partition"})


def test_bare_code() -> None:
    """Docstrings of modules, classes and functions, comments and line breaks go; other texts stay."""
    plain = "class A:\n    def f(self):\n        return {'a': 1}\n"
    spoken = plain.replace("A:", 'A:\n    """C."""').replace("f(self):", 'f(self):  # why\n        """F."""')
    spoken = '"""M."""\n' + spoken.replace("{'a': 1}", '{\n            "a": 1\n        }')
    assert bare_code(plain) == bare_code(spoken)
    assert bare_code(plain) != bare_code(plain.replace("'a'", "'b'"))
    assert bare_code(plain) != bare_code(plain.replace("1", "2"))


@pytest.mark.parametrize("case", WATCHED, ids=lambda case: f"{case.setting}-{case.policy}")
def test_all_that_runs_is_in_the_digest(case: PaperCase) -> None:
    """Every function of placeopt that a simulation calls, and that measures it, is of a module that counts."""
    made = EVERY_SETTING[case.setting].make(case.seed, INSTANCES, case.whole)
    policy = None if isinstance(made, OneAtATime) else paper_policy(case.policy)
    called: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called.add(frame.f_code.co_filename)

    sys.setprofile(watch)
    try:
        if isinstance(made, OneAtATime):
            made.allocated(case.policy)
        else:
            assert policy is not None
            history = campaign.simulate(made, policy)
            campaign.measure_all(campaign.summarise(history), history)
    finally:
        sys.setprofile(None)
    ran = {module for module, path in module_files().items() if str(path) in called}
    assert len(ran) > 15
    assert ran - deciding_modules(policy) <= IDLE
