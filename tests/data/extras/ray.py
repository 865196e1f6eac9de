"""Two tasks on a worker."""

import ray
from joblib import parallel_config
from ray.util.joblib import register_ray

from placeopt.parallel import run_parallel

if __name__ == "__main__":
    ray.init(num_cpus=1, include_dashboard=False)
    register_ray()
    with parallel_config(backend="ray", n_jobs=1):
        assert list(run_parallel(len, ["a", "bc"], jobs=None)) == [1, 2]
