"""
The driver for Slurm: rounds that end in ``scontrol update`` and ``scontrol release``.

``commands`` calls Slurm, ``note`` is what a job's admin comment states of it, ``job_view`` and ``reading`` select the
driver's jobs and make a round of them, ``apply`` changes jobs, ``outcomes`` compares what came of it, ``driver`` is the
loop.
"""
