"""
Prices of one more node, on 50 rounds: do rounds solved alone, longer and with another seed bear the intervals out?

    python bench/prices.py --rounds 50 --time-limit 2 --longer 10

``whatif price`` gives an interval for what one more node is worth: from plans and bounds of two rounds. Here both
rounds are solved again by themselves. Confirmed: the two intervals have a value in common, as they must if both hold
the truth. Sharper: where the second look is exact, its value lies in the interval. Duals: whether theirs does.
"""

from __future__ import annotations

import argparse
from collections import Counter

from placeopt import Engine, generate
from placeopt.whatif import Limits, price
from placeopt.whatif.instance_edit import with_nodes
from placeopt.whatif.round_solving import gain, outcome_of, without_costs

SPECS = ("uniform", "varied", "gangs", "fractions", "cubemesh")


COUNTED = (
    "confirmed",
    "exact prices",
    "exact alone",
    "exact alone, and in the interval",
    "with duals",
    "duals in the interval",
    "without a bound",
)


def main() -> None:
    """Price, solve alone, compare, and print a row a round and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--time-limit", type=float, default=2.0, help="seconds a round of the price")
    parser.add_argument("--longer", type=float, default=10.0, help="seconds a round that is solved alone")
    args = parser.parse_args()
    counts = compare(args.rounds, args.time_limit, args.longer)
    print(f"{args.rounds} rounds: {', '.join(f'{name} {counts[name]}' for name in COUNTED if counts[name])}")


def compare(rounds: int, time_limit_s: float, longer_s: float) -> Counter[str]:
    """Price one more node in each round and solve both rounds alone; print a row of each and return the counts."""
    counts: Counter[str] = Counter()
    with Engine() as engine:
        for number in range(rounds):
            spec, seed = SPECS[number % len(SPECS)], 100 + number // len(SPECS)
            base = generate(spec, jobs=30, nodes=8, gpus=8 if spec == "cubemesh" else 4, seed=seed)
            [stated] = price(base, limits=Limits(time_limit_s)).prices
            first = base.cluster.nodes[0]
            more = with_nodes(base, (*base.cluster.nodes, first.model_copy(update={"id": f"{first.id}+"})))
            limits = Limits(longer_s, seed=seed)
            low, high = gain(*(outcome_of(engine, without_costs(round_), limits) for round_ in (base, more)))
            if stated.low is None or stated.high is None or low is None or high is None:
                counts["without a bound"] += 1
                continue
            counts["confirmed"] += max(stated.low, low) <= min(stated.high, high)
            counts["exact prices"] += stated.low == stated.high
            counts["exact alone"] += low == high
            counts["exact alone, and in the interval"] += low == high and stated.low <= low <= stated.high
            counts["with duals"] += stated.by_duals is not None
            counts["duals in the interval"] += stated.agreement in ("equal", "inside")
            print(
                f"| {spec} | {seed} | {stated.low} | {stated.high} | {low} | {high} | {stated.by_duals} |", flush=True
            )
    return counts


if __name__ == "__main__":
    main()
