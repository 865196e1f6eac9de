"""Drivers: loops that read a live cluster, decide rounds, and carry out their actions in the host system."""
