"""Two versions on the same rounds: whose plans are worth more, whose cost less, how long they take, who is wrong."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from spec import FAILED, Row, key_of, latest

Pair = tuple[Row, Row]
"""The row of one version, and of another one after it."""
SECONDS = ("seconds", "p50_ms")


def compared(before: list[Row], after: list[Row]) -> list[str]:
    """Return a line for each spec that both have measured, then one for each answer that is worse or contradicts."""
    old = {key_of(row): row for row in latest(before)}
    pairs = [(old[key_of(row)], row) for row in latest(after) if key_of(row) in old]
    if not pairs:
        return ["no answer of both: measure the same specs first"]
    lines = []
    for spec in dict.fromkeys(now["spec"] for _, now in pairs):
        some = [pair for pair in pairs if pair[1]["spec"] == spec]
        lines.append(f"{spec}: {', '.join(sums(some))}")
    return lines + [line for pair in pairs for line in judged(*pair)]


def sums(pairs: list[Pair]) -> Iterator[str]:
    """Yield what differs over all pairs of a spec."""
    good = [(was, now) for was, now in pairs if FAILED not in was and FAILED not in now]
    yield f"{len(pairs)} answers"
    for what, better in (("value", 1), ("cost", -1)):
        known = [(was[what], now[what]) for was, now in good if was.get(what) is not None and now.get(what) is not None]
        if what == "cost":  # of plans worth the same
            known = [(was[what], now[what]) for was, now in good if was.get(what) and was["value"] == now["value"]]
        if known:
            signs = [better * (b - a) for a, b in known]
            yield f"{what} better in {sum(s > 0 for s in signs)}, worse in {sum(s < 0 for s in signs)} of {len(known)}"
    for what, keys in (("time", SECONDS), ("CPU time", ("cpu_s",))):
        ratios = [now[key] / was[key] for was, now in good for key in keys if was.get(key) and now.get(key)]
        if ratios:
            yield f"{what} x {statistics.median(ratios):.2f} in the median"
    loads = [statistics.median(row["load"] for row in side) for side in zip(*pairs, strict=True)]
    yield f"load {loads[0]:g} before, {loads[1]:g} after"


def judged(was: Row, now: Row) -> Iterator[str]:
    """Yield what is wrong or worse in the second of two rows."""
    name = " ".join(filter(None, key_of(now)))
    if FAILED in now:
        yield f"{name}: failed: {now[FAILED]}"
        return
    if FAILED in was or "value_bound" not in now or "value_bound" not in was:  # no round
        return
    for one, other, side in ((was, now, "former"), (now, was, "present")):
        value, bound = other["value"], one["value_bound"]
        if bound is not None and value > bound:
            yield f"{name}: CONTRADICTION: the {side} bound {bound:,} is below the value {value:,}"
    if now["value"] < was["value"]:
        percent = 100 * (now["value"] / was["value"] - 1)
        yield f"{name}: value {now['value']:,}, before {was['value']:,} ({percent:.3f} %)"
