"""
The command line: ``commands`` and ``importers``, with one function for each command.

The rooms below do the work; here are arguments, files, signals, exit codes and messages. Commands import what they
need when they run, so that ``placeopt --help`` loads neither NumPy nor a solver.
"""
