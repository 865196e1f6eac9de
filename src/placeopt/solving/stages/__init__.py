"""The stages of a round: heuristic, bound, exact. Each can only replace the best plan by a checked, better one."""
