"""What stands for Cython's module where it is not installed, and the search runs as plain Python."""

from contextlib import nullcontext

compiled = False
nogil = nullcontext()
