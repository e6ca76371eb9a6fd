"""One request to the API, as a test makes it."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient


def ask(api: TestClient, method: str, path: str, status: int = 200, /, **values: Any) -> Any:
    """The JSON of an answer that has this status."""
    in_query = method in ("GET", "DELETE")
    answer = api.request(
        method, f"/api/v1{path}", params=values if in_query else None, json=None if in_query else values
    )
    assert answer.status_code == status, answer.text
    return answer.json()
