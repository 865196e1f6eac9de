"""
Build hook: loops over integers are compiled where Cython and a C compiler are there; elsewhere they stay plain Python.

Both take the same steps, so they make the same plans; an install never fails for lack of either.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "placeopt"
SHARED = f"{PACKAGE}.search._shared"
"""Module with what Cython needs in each of them: alone it takes most of the compiler's time."""
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "infer_types": True,
    "annotation_typing": False,
}
FLAGS = ["-O2", "-g0", "-ffp-contract=off"]  # floats are rounded as Python rounds them, on every processor


class CustomBuildHook(BuildHookInterface[Any]):
    """Compiles the modules that have C types beside them, in a ``.pxd`` file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put compiled modules into the wheel; of an editable install beside their sources, in place of older ones."""
        if self.target_name != "wheel":
            return
        source = Path(self.root, "src")
        if version == "editable":
            for old in (source / PACKAGE).rglob("*.so"):
                old.unlink()
        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder)  # the wheel is written after this
        try:
            built = compiled(source, folder)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever keeps it from being compiled
            self.app.display_warning(f"placeopt is not compiled: {error!r}")
            return
        build_data["pure_python"], build_data["infer_tag"] = False, True
        if version == "editable":
            for path in built:
                shutil.move(path, source / path.relative_to(folder))
        else:
            build_data["force_include"].update({str(path): path.relative_to(folder).as_posix() for path in built})


def compiled(source: Path, folder: Path) -> list[Path]:
    """Compile all modules below ``source`` into ``folder``; return their files, below its ``placeopt``."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension

    scratch = folder / "scratch"
    modules = [
        Extension(
            ".".join(types.relative_to(source).with_suffix("").parts),
            [str(types.with_suffix(".py"))],
            extra_compile_args=FLAGS,
        )
        for types in sorted((source / PACKAGE).rglob("*.pxd"))
    ]
    modules.append(Extension(SHARED, [str(scratch / "_shared.c")], extra_compile_args=FLAGS))
    made = cythonize(
        modules,
        compiler_directives=DIRECTIVES,
        build_dir=str(scratch),
        shared_utility_qualified_name=SHARED,
        quiet=True,
    )
    command = Distribution({"name": "placeopt", "ext_modules": made}).get_command_obj("build_ext")
    command.build_lib, command.build_temp, command.parallel = str(folder), str(scratch), True
    command.ensure_finalized()
    command.run()
    return [Path(path) for path in command.get_outputs()]
