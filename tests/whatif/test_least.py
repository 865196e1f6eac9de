"""The search for the least that suffices, against oracles: none is tried twice, and the cheapest is found."""

from hypothesis import given

from placeopt.whatif.least import LeastSearch
from strategies import Choice, choices


@given(choices)
def test_the_cheapest_counts_are_found(choice: Choice) -> None:
    """On one or two axes, where more never hurts: the cheapest counts, proven, and each is tried once."""
    axes = choice.number(1, 2)
    needs, prices = [choice.number(1, 9) for _ in range(axes)], [choice.number(1, 5) for _ in range(axes)]

    def enough(counts: tuple[int, ...]) -> bool:
        return sum(count * needs[0] // need for count, need in zip(counts, needs, strict=True)) >= needs[0]

    search, tried = LeastSearch(prices, 9, [1] * axes), list[tuple[int, ...]]()
    while counts := search.grown():
        tried.append(counts)
        search.know(counts, fits=enough(counts))
    while more := search.next():
        tried += more
        for counts in more:
            search.know(counts, fits=enough(counts))
    assert len(set(tried)) == len(tried)
    grid = [(i,) for i in range(10)] if axes == 1 else [(i, j) for i in range(10) for j in range(10)]
    best = min(sum(p * n for p, n in zip(prices, counts, strict=True)) for counts in grid if enough(counts))
    assert search.price == search.at_least == best


def test_more_that_does_not_suffice_takes_back_less() -> None:
    """Of measured answers: 2 sufficed, then 3 did not; 5, known before, is the least from which on all do."""
    search = LeastSearch([1], 9, [1])
    for count, fits in ((5, True), (2, True), (3, False)):
        search.know((count,), fits=fits)
    assert (search.found, search.at_least, search.next()) == ((5,), 4, [(4,)])
