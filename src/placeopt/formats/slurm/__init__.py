"""Slurm: a round from the output of its commands, and the topology of its nodes."""
