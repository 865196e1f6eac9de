"""The stages of a round, a file each. A stage can only replace the best plan by a checked, better one."""
