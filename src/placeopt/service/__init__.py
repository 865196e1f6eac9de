"""A cluster as a service: calls with durable effects, for HTTP, for JSON lines, and for drivers of host systems."""
