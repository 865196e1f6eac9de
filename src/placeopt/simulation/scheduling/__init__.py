"""Scheduling policies in a simulation: queues, preemption, estimates, and the rounds that carry them out."""
