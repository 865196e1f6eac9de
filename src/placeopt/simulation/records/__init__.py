"""What users write for a simulation: scenarios, scheduling policies, and every record in them."""
