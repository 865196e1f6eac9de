"""What people see: summaries, GPU maps and pictures of machines as text. Nothing here reads, solves or prints."""
