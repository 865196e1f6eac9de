"""What stands for Cython's module where it is not installed, and what may be compiled runs as plain Python."""

from contextlib import nullcontext

compiled = False
nogil = gil = nullcontext()
