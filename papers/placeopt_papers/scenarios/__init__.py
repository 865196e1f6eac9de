"""Scenarios as the papers describe them: made from their published numbers, by seed."""
