"""``placeopt`` and ``python -m placeopt.cli``."""

import sys


def main() -> None:
    """Run the command line of this process and leave with its exit code."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        sys.stderr.write(f"error: the command line needs {error.name}; pip install 'placeopt[cli]'\n")
        sys.exit(2)
    try:
        from placeopt.cli.run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # while the first modules load
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
