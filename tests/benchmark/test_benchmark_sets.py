"""Sets with rounds that generators make, and the page about instances."""

import re
from pathlib import Path

import pytest

from describe import round_statistics, statistics_page
from made_rounds import generate
from placeopt import BadInput, read_instance, write_document
from placeopt.benchmark import Known, read_sets, read_solu

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


def test_a_generated_round_is_made_when_it_is_needed(tmp_path: Path) -> None:
    """Not by reading the list, and only once; it is what the generator gives."""
    (tmp_path / "big.test").write_text("generate:uniform-5x2x4-s3  # small here\n")
    [item] = read_sets(["big"], tmp_path)
    assert (item.name, item.kind) == ("uniform-5x2x4-s3", "placement")
    assert not item.path.exists()
    first = item.sha256()
    assert read_instance(item.there()) == generate("uniform", jobs=5, nodes=2, gpus=4, seed=3)
    at = item.path.stat().st_mtime_ns
    assert read_sets(["generate:uniform-5x2x4-s3"], tmp_path)[0].sha256() == first
    assert item.path.stat().st_mtime_ns == at


def test_a_round_of_another_generator_is_not_taken_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is named by what made it; when a generator changes, the round is made anew and the old one goes."""
    [item] = read_sets(["generate:uniform-5x2x4-s3"], tmp_path)
    [other] = read_sets(["generate:uniform-5x2x4-s4"], tmp_path)
    before, beside = item.there(), other.there()
    monkeypatch.setattr("placeopt.benchmark.sets.generators_digest", lambda: "0123456789ab")
    [again] = read_sets(["generate:uniform-5x2x4-s3"], tmp_path)
    assert (again.name, again.path.exists()) == (item.name, False)
    assert again.sha256()
    assert not before.exists()
    assert beside.exists()


@pytest.mark.parametrize(
    "entry", ["generate:", "generate:uniform", "generate:uniform-1x1-s0", "generate:../x-1x1x1-s0"]
)
def test_what_is_no_round_to_generate_is_named(tmp_path: Path, entry: str) -> None:
    """In a list with its line; a spec that is not known, when it is made."""
    (tmp_path / "x.test").write_text(f"{entry}\n")
    with pytest.raises(BadInput, match=r"x\.test:1.*planted"):
        read_sets(["x"], tmp_path)
    [unknown] = read_sets(["generate:none-1x1x1-s0"], tmp_path)
    with pytest.raises(BadInput, match="spec: 'none'"):
        unknown.sha256()


def test_figures_of_a_round() -> None:
    """As the generator's page says: half shares or whole, some busy, gangs with splits."""
    found = round_statistics(generate("defrag", jobs=10, nodes=8, gpus=4, seed=0))
    assert (found.waiting, found.nodes, found.gpus, found.shares, found.gangs) == (10, 8, 32, 0, 0)
    assert found.running > 0
    assert found.features == ("moves",)
    assert "splits" in round_statistics(generate("gangs", jobs=40, nodes=16, gpus=8, seed=0)).features


def test_the_page(tmp_path: Path) -> None:
    """An instance stands once; who found what; proven values are marked; models have their own table."""
    write_document(tmp_path / "a.json", generate("parity", jobs=4, nodes=6, gpus=4, seed=0))
    (tmp_path / "one.test").write_text("a.json\n")
    (tmp_path / "two.test").write_text(f"a.json\n{INSTANCES / 'gap' / 'gap1-0.gap'}\n")
    sets = {name: read_sets([name], tmp_path) for name in ("one", "two")}
    known = {
        "a": Known(5, 5, "auto, 10 s", "highs, 1 h"),
        "a.cost": Known(1200, 1100),
        "gap1-0": Known(300, 261, "greedy", ""),
    }
    page = statistics_page(sets, known)
    assert page.count("| a |") == 1
    assert re.search(r"\| a \| 4 \| 0 \| 6 \| 24 \|.*\| = 5 \| 5 \| 1,200 \(1,100\) \| auto, 10 s; highs, 1 h \|", page)
    assert re.search(r"\| gap1-0 \| 75 \| 20 \| 300 \| 261 \| greedy \|", page)


@pytest.fixture(scope="module")
def stored() -> dict[str, list[str]]:
    """The cells of the stored page, by instance; the last is its checksum."""
    rows = [line.strip("|").split("|") for line in (INSTANCES / "STATISTICS.md").read_text().splitlines()]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows if len(row) > 3}


def test_the_stored_page_agrees_with_the_stored_instances(stored: dict[str, list[str]]) -> None:
    """Of all that need not be made anew: checksums, and every set."""
    names = sorted(path.stem for path in INSTANCES.glob("*.test"))
    assert sorted(re.findall(r"^## (.*)$", (INSTANCES / "STATISTICS.md").read_text(), re.MULTILINE)) == names
    for item in read_sets(names, INSTANCES):
        checksum = stored[item.name][-1]
        assert re.fullmatch("[0-9a-f]{12}", checksum), item.name
        assert item.generated or item.sha256().startswith(checksum), item.name


def test_the_stored_page_lists_known_values_and_finders(stored: dict[str, list[str]]) -> None:
    """Of every value and bound of best.solu; all optima have a finder. A cost without a model stands at its round."""

    def shown(figure: float | None) -> str:
        return "-" if figure is None else f"{figure:,}"

    models = {item.name for item in read_sets(["models"], INSTANCES)}
    others = models | {item.name for item in read_sets(["gap", "mip", "qap"], INSTANCES)}
    for name, entry in read_solu(INSTANCES / "best.solu").items():
        if name.endswith(".cost"):
            cost = f"= {entry.value:,}" if entry.optimal else f"{entry.value:,} ({shown(entry.bound)})"
            assert cost in stored[name.removesuffix(".cost")], name
            if name not in models:
                continue
        value, bound, *costs, finders, _ = stored[name][-4 if name in others else -5 :]
        assert len(costs) == (name not in others)
        assert value == f"{'= ' * entry.optimal}{shown(entry.value)}", name
        assert bound == shown(entry.bound), name
        assert set(filter(None, finders.split("; "))) == set(filter(None, (entry.value_by, entry.bound_by))), name
        assert finders or not entry.optimal, name


def test_what_generators_make_is_what_is_known(tmp_path: Path, stored: dict[str, list[str]]) -> None:
    """
    Rounds of up to 1,000 jobs that are not stored: their checksums on the page.

    If this fails a generator has changed, and what best.solu says of its rounds is of others: run 'bench run', 'bench
    report --update' and 'bench/instances/describe.py' anew, after taking their lines out of best.solu.
    """
    large = [item.name for item in read_sets(["large"], INSTANCES)]
    names = [name for name in large if int(name.split("-")[1].split("x")[0]) <= 1000]
    assert len(names) >= 4
    for item in read_sets([f"generate:{name}" for name in names], tmp_path):
        assert item.sha256().startswith(stored[item.name][-1]), item.name
