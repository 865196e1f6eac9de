"""
The driver for Slurm: rounds that end in ``scontrol update`` and ``scontrol release``.

``commands`` calls Slurm, ``note`` is what a job's admin comment states of it, ``job_view`` and ``reading`` say what is the
driver's and make a round of it, ``apply`` changes jobs, ``outcomes`` compares what came of it, ``driver`` is the loop.
"""
