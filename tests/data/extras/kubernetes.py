"""A wrong kubeconfig is refused in words."""

from pathlib import Path

from placeopt.drivers.kubernetes import Api
from placeopt.errors import BadInput

Path("config").write_text("{}")
try:
    Api("config")
except BadInput as error:
    assert "not installed" not in str(error), error  # noqa: PT017 - a script
else:
    raise AssertionError("accepted")
