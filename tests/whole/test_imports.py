"""What importing placeopt loads. Which room may import which: ``.importlinter``."""

import json
import subprocess
import sys


def test_importing_the_package_loads_the_standard_library_only() -> None:
    """Command lines and services start with it; what is asked for is loaded then."""
    program = (
        "import json, sys; before = set(sys.modules); import placeopt; dir(placeopt); "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60).stdout
    loaded = json.loads(out)
    assert "placeopt" in loaded
    strangers = [name for name in loaded if name.split(".")[0] not in {*sys.stdlib_module_names, "placeopt"}]
    assert not strangers
    assert {name for name in loaded if name.startswith("placeopt.")} == {"placeopt.lazy"}  # the reader of its names
