"""Mkdocs --version."""

import subprocess
import sys

subprocess.run([sys.executable, "-m", "mkdocs", "--version"], check=True)
