"""How examples are drawn: however long it takes, since a busy machine is no fault of what is tested.

A hundred for each test, or with `make fuzz` ten thousand for each reader.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", PATIENT)
settings.register_profile("fuzz", PATIENT, max_examples=10_000)
settings.load_profile("patient")
