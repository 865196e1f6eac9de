"""The calls of a service over HTTP."""
