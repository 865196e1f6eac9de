"""The service over HTTP loads."""
