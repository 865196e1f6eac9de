"""Topology dumps of hosts and fabrics, by the tool that writes them, made into machines and domains."""
