"""No model is ever asked for real."""

from __future__ import annotations

from tests.agent.conftest import offline_and_patient as offline_and_patient
