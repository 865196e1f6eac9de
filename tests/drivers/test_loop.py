"""The loop of both drivers: its pace, its end, and a host that does not answer."""

import threading
import time

import pytest

from placeopt.drivers import Unreachable, run_rounds, seconds_of
from placeopt.errors import BadArgument


class Steps:
    """Turns that take a given time or fail, on a clock that only they and pauses move."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, turns: list[float | Exception]) -> None:
        self.now, self.turns, self.began = 100.0, turns, list[float]()
        self.rounds, self.messages = list[int](), list[str]()
        self.stop = threading.Event()
        monkeypatch.setattr(self.stop, "wait", self.wait)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def wait(self, timeout: float | None = None) -> bool:
        self.now += timeout or 0.0
        return False

    def turn(self) -> int:
        self.began.append(self.now - 100)
        step = self.turns[len(self.began) - 1]
        if isinstance(step, Exception):
            raise step
        self.now += step
        return len(self.began)

    def run(self, rounds: int | None = None) -> None:
        run_rounds(self.turn, self.rounds.append, self.messages.append, every_s=10, stop=self.stop, rounds=rounds)


def test_rounds_begin_at_the_interval_and_a_long_one_delays_the_next_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch, [1.0, 14.0, 0.0, 9.0])
    steps.run(rounds=4)
    assert steps.began == [0, 10, 24, 34]
    assert steps.rounds == [1, 2, 3, 4]
    assert steps.now == 143  # nothing is waited for after the last round
    assert steps.messages == []


def test_silence_is_no_round_and_its_pauses_begin_anew_after_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    away = Unreachable("away")
    steps = Steps(monkeypatch, [away, away, 0.0, away, 0.0])
    steps.run(rounds=2)
    assert steps.began == [0, 1, 3, 13, 14]
    assert steps.rounds == [3, 5]
    assert steps.messages == [
        "no answer: away; next attempt in 1 s",
        "no answer: away; next attempt in 2 s",
        "there is an answer again, after 2 attempts",
        "no answer: away; next attempt in 1 s",
        "there is an answer again, after 1 attempt",
    ]


def test_pauses_grow_to_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch, [*[Unreachable("away")] * 8, 0.0])
    steps.run(rounds=1)
    assert steps.began == [0, 1, 3, 7, 15, 31, 63, 123, 183]


def test_a_stop_ends_it_and_other_errors_leave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = Steps(monkeypatch, [0.0, ZeroDivisionError()])
    with pytest.raises(ZeroDivisionError):
        steps.run()
    steps.stop.set()
    steps.run()
    assert len(steps.began) == 2


@pytest.mark.parametrize(
    ("text", "seconds"), [("15", 15), (" 1s", 1), ("2.5m", 150), ("3min", 180), ("24h", 86_400), ("1.25", 1.25)]
)
def test_intervals(text: str, seconds: float) -> None:
    assert seconds_of("every", text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0.9s", "25h", "1d", "-5", "1e3", "soon", "1 5", "nan", "15S"])
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(BadArgument, match=r"every: .*expected a time from 1s to 24h"):
        seconds_of("every", text)
