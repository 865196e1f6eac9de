"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# how fast the machine draws examples and runs them decides no test
settings.register_profile("placeopt", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("placeopt")
