"""Scores: how greedy ranks the nodes for a bundle. The lower the better; ``registry`` lists them by name."""
