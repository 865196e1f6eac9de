"""Systems that papers describe, each a room of its own: rules, policies, predictors and scenarios."""
