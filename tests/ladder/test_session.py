"""How many problems a session keeps open."""

from __future__ import annotations

import pytest

from kace.config import load_config
from kace.ladder.session import BATCH_WINDOW, Session
from kace.models.local import SLOTS


@pytest.mark.parametrize(
    ("settings", "problems"),
    [
        ({"model": "local/x"}, SLOTS),
        ({"model": "local/x", "ray": "auto"}, 100),  # one engine's slots would leave other workers idle
        ({"model": "openai/x", "max_connections": 7}, 7),
        ({"model": "openai/x", "batch": True}, BATCH_WINDOW),
    ],
)
def test_a_session_keeps_every_place_of_its_model_busy(settings: dict[str, object], problems: int):
    config = load_config(settings, env={})
    assert Session(config, None, None, None, None).window == problems  # type: ignore[arg-type]
