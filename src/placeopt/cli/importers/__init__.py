"""The importers of ``placeopt import``: one file an importer, one line in the table of `registry`."""
