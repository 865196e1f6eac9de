"""What ``tools/verify.py`` says that bundles can pay on a node, beside every way to lie there, tried one by one."""

from __future__ import annotations

import itertools
import random

import pytest

import verify
import verify_round
from helpers.night import seeds

FREE = {"cpu_millicores": 12, "memory_mib": 9}


def drawn_items(draw: random.Random, full: int) -> list[tuple[int, int, int, dict[str, int], int]]:
    """Return up to four bundles: GPUs, share of each, price, amounts, how many of it there are."""
    items = []
    for _ in range(draw.randint(1, 4)):
        gpus = draw.randint(0, 3)
        share = full if gpus != 1 or full == 1 else draw.choice((full, 300, 400, 600, 700))
        amounts = {name: draw.randint(1, 6) for name in FREE if draw.random() < 0.6}
        items.append((gpus, share, draw.randint(1, 30), amounts, draw.randint(1, 3)))
    return items


def has_gpus_for(units: list[int], bundles: list[tuple[int, int]]) -> bool:
    """Return whether GPUs with ``units`` left can hold bundles of so many GPUs with a share of each."""
    if not bundles:
        return True
    (gpus, share), *others = bundles
    for chosen in itertools.combinations(range(len(units)), gpus):
        left = [unit - share * (g in chosen) for g, unit in enumerate(units)]
        if min(left, default=0) >= 0 and has_gpus_for(left, others):
            return True
    return False


def most_paid(units: list[int], items: list[tuple[int, int, int, dict[str, int], int]]) -> int:
    """Return what the best filling pays, by all fillings."""
    best = 0
    for counts in itertools.product(*(range(most + 1) for *_, most in items)):
        held = [item[:2] for item, count in zip(items, counts, strict=True) for _ in range(count) if item[0]]
        taken = {
            name: sum(count * item[3].get(name, 0) for item, count in zip(items, counts, strict=True)) for name in FREE
        }
        pays = sum(count * item[2] for item, count in zip(items, counts, strict=True))
        if pays > best and all(taken[name] <= FREE[name] for name in FREE) and has_gpus_for(units, held):
            best = pays
    return best


def overpaid(units: list[int], full: int, items: list[verify.Item], prices: dict[str, int], most: int) -> bool:
    """Return whether items can pay more than ``most`` on a node, beyond what its amounts cost."""
    policy = {} if full == verify_round.WHOLE else {"share_mode": "exclusive"}
    costs = verify.Costs(verify_round.Round({"cluster": {"machines": [], "nodes": []}}, policy), {})
    gpus = [verify_round.Gpu("g", unit, 0) for unit in units]
    node = verify_round.Node("n", "m", {}, [], drained=False, free=FREE, gpus=gpus)
    return costs.overpaid(node, items, prices, most, 0)


@pytest.mark.parametrize("seed", seeds(200))
def test_no_filling_pays_more_than_is_accepted(seed: int) -> None:
    """At any prices of amounts: less than the best filling pays is never accepted; what all could pay together is."""
    draw = random.Random(seed)
    full = draw.choice((1, verify_round.WHOLE))
    units = [1] * 3 if full == 1 else [draw.choice((full, full, 700, 400)) for _ in range(3)]
    items = drawn_items(draw, full)
    prices = {name: draw.randint(0, 4) for name in FREE}
    listed = []
    for gpus, share, price, amounts, most in items:
        pays = price - sum(prices[name] * amount for name, amount in amounts.items())
        listed.append(verify.Item(gpus, pays, verify_round.Bundle(gpus, share, tuple(amounts.items())), most))
    beyond = sum(prices[name] * FREE[name] for name in FREE)
    best = most_paid(units, items)
    assert overpaid(units, full, listed, prices, best - 1 - beyond)
    assert not overpaid(units, full, listed, prices, sum(price * most for _, _, price, _, most in items) - beyond)


def test_amounts_are_looked_at_together_with_gpus() -> None:
    """Prices of amounts alone prove 20: half of the CPU is left beside one large bundle, which no other one takes."""
    item = verify.Item(1, -6, verify_round.Bundle(1, verify_round.WHOLE, (("cpu_millicores", 8),)), most=2)
    units, prices = [verify_round.WHOLE] * 2, {"cpu_millicores": 2}
    assert not overpaid(units, verify_round.WHOLE, [item], prices, 10 - 24)
    assert overpaid(units, verify_round.WHOLE, [item], prices, 9 - 24)
