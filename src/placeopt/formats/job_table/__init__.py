"""Tables of jobs with columns named by the caller: CSV, JSON or Parquet in, jobs with times and demands out."""
