"""What every test runs under: JAX on the CPU, and the same random examples on every run."""

import os

# Before anything imports jax: a test means the same on a machine that has an accelerator.
os.environ["JAX_PLATFORMS"] = "cpu"

from hypothesis import HealthCheck, settings

# Derandomized: a red test stays red until somebody repairs it. No deadline: the first call of a function
# compiles it, which takes far longer than every later call.
settings.register_profile(
    "stablegrad",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("stablegrad")
