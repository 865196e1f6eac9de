"""The public call of the referee, which itself imports nothing but the model: its arguments are checked here."""

from placeopt import check
from placeopt.arguments import checked

violations = checked(check.violations)
"""`placeopt.check.violations`, which see; raises `BadInput` if an argument is not an instance or a plan."""
