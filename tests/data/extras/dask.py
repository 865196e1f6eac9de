"""Two tasks on a worker."""

from placeopt.parallel import run_parallel, workers

if __name__ == "__main__":
    with workers("dask", 1) as jobs:
        assert list(run_parallel(len, ["a", "bc"], jobs=jobs)) == [1, 2]
