"""Profiled runs of a job whose rates are known, and runs that cannot have been."""

from placeopt.systems.genie import ProfiledRun, RateModel

ODD_RUNS = [ProfiledRun(1, 1, 8, float("nan")), ProfiledRun(1, 1, 8, 0.0), ProfiledRun(1, 1, 0, 1.0)]


def runs_of(across: float, inside: float) -> list[ProfiledRun]:
    """Runs of a job whose model is known."""
    model = RateModel.model_construct(
        single=(10.0, 2.0, -0.01), across=across, inside=inside, local_batch_min=1.0, local_batch_max=64.0
    )
    shapes = [(1, 1), (1, 2), (1, 4), (2, 4), (4, 4), (2, 1), (4, 1)]
    return [ProfiledRun(n, g, n * g * b, model.rate(n, g, n * g * b)) for n, g in shapes for b in (4, 8, 16, 32)]
