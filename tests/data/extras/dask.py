"""Two tasks on a worker."""

from distributed import Client
from joblib import parallel_config

from placeopt.parallel import run_parallel

if __name__ == "__main__":
    with Client(n_workers=1, threads_per_worker=1, dashboard_address=None), parallel_config(backend="dask"):
        assert list(run_parallel(len, ["a", "bc"], jobs=None)) == [1, 2]
