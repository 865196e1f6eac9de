"""Drivers: loops that read a running cluster, decide, and have its resource manager do it."""
