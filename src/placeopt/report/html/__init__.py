"""The map of the live page."""
