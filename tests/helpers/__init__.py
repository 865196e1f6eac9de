"""What tests, campaigns and measurements share: rounds in code, random rounds, and oracles that judge answers."""
