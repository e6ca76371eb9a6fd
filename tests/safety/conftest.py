"""No model is ever asked for real."""

from __future__ import annotations

import pytest
from pydantic_ai import models


@pytest.fixture(autouse=True)
def no_real_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "ALLOW_MODEL_REQUESTS", False)
