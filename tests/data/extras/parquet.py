"""A table of jobs is read."""

import pyarrow
import pyarrow.parquet

from placeopt.formats.job_table.rows import read_rows

pyarrow.parquet.write_table(pyarrow.table({"submit": [0, 60], "duration": [10, 20], "gpus": [1, 2]}), "jobs.parquet")
assert len(list(read_rows("jobs.parquet", ["submit", "gpus"]).rows)) == 2
