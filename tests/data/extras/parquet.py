"""A table of jobs is read."""

import pyarrow
import pyarrow.parquet

from placeopt.importers.job_table import read_jobs

pyarrow.parquet.write_table(pyarrow.table({"submit": [0, 60], "duration": [10, 20], "gpus": [1, 2]}), "jobs.parquet")
jobs, _ = read_jobs("jobs.parquet", "submit=submit,duration=duration,gpus=gpus")
assert [job.gpus for job in jobs] == [1, 2]
