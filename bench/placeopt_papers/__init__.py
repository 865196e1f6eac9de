"""The figures that five papers report, beside ours: settings, measures, tables (``placeopt bench papers``)."""
