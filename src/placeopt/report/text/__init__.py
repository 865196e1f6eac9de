"""Text for terminals: summaries, GPU maps and pictures of machines. Nothing here reads, solves or prints."""
