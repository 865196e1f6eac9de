"""The order of events, with and without steps, and when rounds are held."""

from placeopt.simulation.event_queue import EventQueue


def drained(agenda: EventQueue) -> list[tuple[int, str, str]]:
    """Return everything that is left."""
    return [agenda.next() for _ in range(len(agenda))]


def test_at_one_moment_ends_come_before_arrivals_and_the_round_last() -> None:
    """What ends frees its GPUs for the round of the same moment."""
    agenda = EventQueue(None, None)
    agenda.round_after("arrival", 5)
    agenda.add("arrival", "a", 5)
    agenda.end("b", 5)
    assert drained(agenda) == [(5, "end", "b"), (5, "arrival", "a"), (5, "round", "")]


def test_in_steps_the_round_comes_before_the_ends() -> None:
    """As in SC'17's artifact: GPUs of a job that ends are free for the round of the next step."""
    agenda = EventQueue(1100, None)
    agenda.add("arrival", "a", 513)
    agenda.end("b", agenda.noticed(1100, 1101))
    agenda.end("c", agenda.noticed(0, 1100))
    agenda.round_after("arrival", 1100)
    agenda.round_after("end", 1100)
    assert drained(agenda) == [
        (1100, "arrival", "a"),
        (1100, "round", ""),
        (1100, "end", "c"),
        (2200, "round", ""),
        (2200, "end", "b"),
    ]


def test_rounds_at_intervals_are_held_once() -> None:
    """At the next multiple, however many events ask for it."""
    agenda = EventQueue(None, 60_000)
    for at in (1, 2, 60_000, 60_001):
        agenda.round_after("arrival", at)
    assert drained(agenda) == [(60_000, "round", ""), (120_000, "round", "")]
