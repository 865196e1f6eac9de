"""Jobs that are read with equal options share them, and nothing else changes."""

from placeopt import build
from placeopt.formats import dumps, loads
from placeopt.model import Instance


def test_equal_options_are_one_object() -> None:
    """Two of three jobs are alike but for their name; the third asks for another share."""
    jobs = [build.job(name, gpu_milli=milli, gpu_memory_mib=0) for name, milli in (("a", 500), ("b", 500), ("c", 400))]
    given = build.instance(1, jobs)
    read = loads(Instance, dumps(given))
    first, second, third = (job.options for job in read.jobs)
    assert first is second
    assert first != third
    assert read == given
    assert read.digest == given.digest
