"""Machines and network domains from the output of topology tools; one module a tool."""
