"""What tests and campaigns share: rounds in code, random rounds, and oracles that judge answers."""
