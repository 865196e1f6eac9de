"""One round from arguments to checked plan: context, stages in a pipeline, and the plan at the end."""
