"""The API does what its OpenAPI says: each answer of each route, and each mistake, fits its schema."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.notes.transcripts import SpokenTurn
from co_cli.saving.turns import KeptSession, keep_turns
from co_cli.server.routes import API, ROUTES
from co_cli.server.web_app import Access, Site
from tests.server.browser import wait_for
from tests.server.conftest import signed_in

REF = "memory:odalys-has-the-last-word"
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "http.md"


class Contract:
    """Asks the API, and checks each answer against its description."""

    def __init__(self, kb: KnowledgeBase) -> None:
        self.access = Access()
        self._api = signed_in(Site(kb, self.access, []))
        self.document: dict[str, Any] = self._api.get(f"{API}/openapi.json").json()
        self.used = {("GET", "/openapi.json"), ("GET", "/events")}

    def ask(self, method: str, path: str, status: int = 200, /, **values: Any) -> Any:
        """`path` is as OpenAPI writes it; its names are taken from the values."""
        operation = self.document["paths"][path][method.lower()]
        filled = re.sub(r"{(\w+)}", lambda name: values.pop(name[1]), path)
        in_query = method in ("GET", "DELETE")
        given = {"params": values} if in_query else {"json": values}
        answer = self._api.request(method, API + filled, **given)
        assert answer.status_code == status, answer.text
        described = operation["responses"]["200" if status == 200 else "default"]["content"]
        self.used.add((method, path))
        if "application/json" not in described:
            return answer.content
        self.check(answer.json(), described["application/json"]["schema"])
        return answer.json()

    def check(self, value: Any, schema: dict[str, Any]) -> None:
        validator = Draft202012Validator({**schema, "components": self.document["components"]})
        assert [f"{one.json_path}: {one.message[:300]}" for one in validator.iter_errors(value)] == []

    def until_done(self, path: str) -> Any:
        wait_for(lambda: self.ask("GET", path)["job"]["state"] != "running")
        return self.ask("GET", path)


@pytest.fixture
def contract(sample: KnowledgeBase) -> Contract:
    Path(sample.root, "memories/picture.md").write_text("![x](dot.svg)")
    Path(sample.root, "memories/dot.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    Path(sample.root, "memories/old.md").write_text("---\nvalid_until: 2020-01-01\n---\nThe pier is closed.")
    sample.sync()
    return Contract(sample)


@pytest.mark.medium
def test_every_answer_of_every_route_fits_its_description(contract: Contract, sample: KnowledgeBase) -> None:
    ask = contract.ask
    ask("POST", "/session", code=contract.access.code)
    ask("GET", "/session")
    for typing in (True, False):
        ask("GET", "/search", q="who decides what ships", typing=typing)
    ask("GET", "/search", q="zqxzqx nothing", source=["memory"], since="1 year")
    ask("GET", "/why", q="who decides what ships", ref=REF)
    ask("GET", "/filters")
    ask("GET", "/browse", folder="articles", tag=["ships"], sort="title", limit=3)
    ask("GET", "/browse", title="picture")
    ask("GET", "/tags", source="memory")
    ask("POST", "/search", q="who decides what ships", tags="ships", weights={"words": 1.0}, track=False)
    ask("POST", "/context")
    ask("POST", "/context", prompt="who has the last word on what ships: Odalys?")
    ask("POST", "/tools/{name}", name="recall_memory", arguments={"query": "who decides what ships"})
    ask("GET", "/status")
    ask("GET", "/notes", source="memory", limit=3)
    ask("POST", "/ratings", ref=REF, good=True, q="who decides what ships")
    for ref in (REF, "article:people/who-does-what", "memory:old"):
        ask("GET", "/notes/{ref}", ref=ref, opened=True)
        ask("GET", "/rendered/{ref}", ref=ref)
        ask("GET", "/history/{ref}", ref=ref)
        ask("GET", "/backlinks/{ref}", ref=ref)
    ask("GET", "/titles", q="last word")
    ask("GET", "/titles")
    ask("GET", "/bodies", ref=[REF, "memory:none"])
    ask("POST", "/rendered", text="*new*")
    saved = ask("POST", "/notes", content="Zebra crossings are painted in May.", tags=["road"])
    note = ask("GET", "/notes/{ref}", ref=saved["ref"])
    ask("PUT", "/notes/{ref}", ref=saved["ref"], content="Painted in June.", version=note["version"])
    ask("PUT", "/notes/{ref}", 409, ref=saved["ref"], content="In July.", version=note["version"])
    ask("PUT", "/notes/{ref}", ref=saved["ref"], content="In August.")
    past = ask("GET", "/history/{ref}", ref=saved["ref"])
    ask("GET", "/versions/{ref}", ref=saved["ref"], version=past["copies"][0]["path"])
    ask("GET", "/saves/{seq}", 400, seq="1")
    whole = ask("GET", "/whole/{ref}", ref=saved["ref"])
    ask("PUT", "/whole/{ref}", ref=saved["ref"], text=whole["text"], version=whole["version"])
    ask("PUT", "/notes/{ref}", ref=saved["ref"], content="- [ ] Paint it")
    shown = ask("GET", "/rendered/{ref}", ref=saved["ref"])
    line = ask("GET", "/notes/{ref}", ref=saved["ref"])["body_line"]
    ask("PUT", "/tasks/{ref}", ref=saved["ref"], line=line, done=True, version=shown["version"])
    ask("PUT", "/tasks/{ref}", 409, ref=saved["ref"], line=line, done=True, version=shown["version"])
    ask("DELETE", "/notes/{ref}", ref=saved["ref"])
    ask("POST", "/restored", ref=saved["ref"])
    assert ask("GET", "/files/{ref}", ref="memory:picture", name="dot.svg").startswith(b"<svg")
    attached = ask("POST", "/files/{ref}", ref=REF, name="plan.txt", data="SGk=")
    assert ask("GET", "/files/{ref}", ref=REF, name=attached["path"]) == b"Hi"
    ask("POST", "/documents", name="larch.txt", data="TGFyY2hlcyBsb3NlIHRoZWlyIG5lZWRsZXMu")
    ask("POST", "/pages", url="http://127.0.0.1/private")
    ask("GET", "/clipper")
    ask("GET", "/clips")
    ask("POST", "/clips", url="https://example.org/larch", html="<h1>Larch</h1><p>Larches lose their needles.</p>")
    ask("GET", "/activity")
    ask("GET", "/activity/stats")
    ask("GET", "/activity/memories")
    sample.activity.injected(
        [{"ref": REF, "why": "always", "tokens": 9}], "c0ffee", prompt="Ship it?", given="Ask Odalys."
    )
    ask("GET", "/activity/sessions", limit=5)
    ask("GET", "/activity/sessions/{id}", id="web/c0ffee")
    kept = keep_turns(sample.vault, KeptSession("c0ffee"), [SpokenTurn("User", "Ship it?")])
    ask("GET", "/conversations")
    ask("GET", "/conversations/{ref}", ref=kept.ref)
    ask("GET", "/settings")
    ask("PUT", "/settings/{name}", name="capture", value="keep")
    ask("GET", "/tokens")
    ask("POST", "/tokens", role="read", name="ci", days=30)
    ask("POST", "/tokens/{name}/rotate", name="ci", keep_hours=1)
    ask("DELETE", "/tokens/{name}", name="ci")
    ask("GET", "/token-changes")
    ask("GET", "/audit", 400)
    ask("GET", "/review/count")
    ask("POST", "/given", prompt="who decides what ships")
    ask("GET", "/map")
    ask("GET", "/health")
    ask("POST", "/daily", day="2026-11-18", line="Called the printer.")
    ask("POST", "/links", ref=REF, before="An earlier title")
    ask("POST", "/markdown", html="<p>Ship <b>it</b></p>")
    handbook = Path(sample.root).with_name("handbook")
    handbook.mkdir(exist_ok=True)
    (handbook / "rules.md").write_text("Be kind.")
    ask("POST", "/sources", origin=str(handbook))
    contract.until_done("/sources")
    ask("POST", "/sources/{label}/refresh", label="folder:handbook")
    contract.until_done("/sources")
    ask("GET", "/sources/{label}/skipped", label="folder:handbook")
    ask("DELETE", "/sources/{label}", label="folder:handbook")
    ask("POST", "/doctor")
    contract.until_done("/doctor")
    ask("POST", "/doctor/fix")
    contract.until_done("/doctor")
    ask("POST", "/compare", q="bells", left={}, right={"backend": "fts5"})
    ask("POST", "/review")
    found = contract.until_done("/review")
    decided = ask("POST", "/review/decisions", key=found["findings"][0]["key"], action="keep")
    ask("GET", "/review")
    ask("DELETE", "/review/decisions/{key}", key=decided["key"])
    drafts = ask("GET", "/review", kind="combine")["findings"]
    ask("POST", "/review/rewrite", 400, key=drafts[0]["key"])  # there is no model

    described = {(method.upper(), path) for path, methods in contract.document["paths"].items() for method in methods}
    assert len(described) == len(ROUTES) + len(("sign_in", "listen"))
    assert described - contract.used == set(), "add a request for these"


@pytest.mark.medium
def test_a_mistake_is_described_and_says_how_to_fix_it(contract: Contract) -> None:
    mistakes = [
        contract.ask("GET", "/search", 400),
        contract.ask("GET", "/search", 400, q="x", limit="many"),
        contract.ask("GET", "/search", 400, q="x", lmit=3),
        contract.ask("GET", "/notes", 400, limit=10**30),
        contract.ask("GET", "/notes/{ref}", 404, ref="memory:odalys-has-the-last"),
        contract.ask("POST", "/notes", 400, content=7),
    ]
    assert [one["error"]["message"] for one in mistakes] == [
        "q: Field required",
        "limit: Input should be a valid integer, unable to parse string as an integer",
        "/search takes no lmit",
        "limit: Input should be less than or equal to 9223372036854775807",
        f"no note 'memory:odalys-has-the-last': did you mean {REF}?",
        "content: Input should be a valid string",
    ]


@pytest.mark.medium
def test_the_description_is_openapi(contract: Contract) -> None:
    document = contract.document

    assert document["openapi"] == "3.1.0"
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            named = {one["name"] for one in operation["parameters"] if one["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path)), path
            assert operation["summary"], (method, path)
            for one in operation["parameters"]:
                Draft202012Validator.check_schema(one["schema"])
    names = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len({*names}) == len(names)


def routes_table(document: dict[str, Any]) -> str:
    """The table of docs/reference/http.md."""
    lines = ["| route | takes | what it does |", "| --- | --- | --- |"]
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            taken = [one["name"] for one in operation["parameters"] if one["in"] == "query"]
            taken += body.get("properties", ())
            names = ", ".join(f"`{name}`" for name in taken)
            lines.append(f"| `{method.upper()} {path}` | {names} | {operation['summary']} |")
    return "\n".join(lines) + "\n"


@pytest.mark.medium
@pytest.mark.skipif(not REFERENCE.exists(), reason="an installed package has no docs")
def test_the_reference_has_every_route(contract: Contract) -> None:
    table = routes_table(contract.document)

    assert REFERENCE.read_text("utf-8").partition("## Routes\n\n")[2] == table, f"write this:\n{table}"
