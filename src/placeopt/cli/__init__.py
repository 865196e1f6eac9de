"""
The command line: one file a command.

What a command does lives below; here are arguments, files, signals, exit codes and words. Commands import what they
need when they run, so that ``placeopt --help`` loads neither NumPy nor a solver.
"""
