"""Search of the page: while typing and after a pause, reasons and ratings."""

from __future__ import annotations

from starlette.testclient import TestClient

from co_cli.entrance.knowledge_base import KnowledgeBase
from co_cli.ground.values import plain
from tests.server.api import ask


def logged(kb: KnowledgeBase) -> list[tuple[str, str]]:
    with kb.activity.written().reading() as connection:
        return list(connection.execute("select text, front_end from searches order by id"))


def test_typing_completes_the_last_word_and_logs_nothing(api: TestClient, sample: KnowledgeBase) -> None:
    found = ask(api, "GET", "/search", q="odal", typing=True)

    assert found["state"] == "found"
    assert any("odalys" in hit["snippet"].lower() + hit["title"].lower() for hit in found["hits"])
    assert found["meta"]["read"] == 0
    assert logged(sample) == []


def test_a_pause_searches_once_and_logs_it(api: TestClient, sample: KnowledgeBase) -> None:
    found = ask(api, "GET", "/search", q="who decides what ships")

    assert found["hits"][0]["ref"] == "memory:odalys-has-the-last-word"
    assert logged(sample) == [("who decides what ships", "web")]
    expected = plain(sample.search("who decides what ships"))
    assert found.keys() == expected.keys()
    assert [hit["ref"] for hit in found["hits"]] == [hit["ref"] for hit in expected["hits"]]


def test_snippets_are_text_and_not_markdown(api: TestClient, sample: KnowledgeBase) -> None:
    sample.remember("The **zebra** crossing is at [[harbour|the harbour]], says `Odalys`.", title="Crossing")

    hit = ask(api, "GET", "/search", q="zebra harbour")["hits"][0]

    assert hit["snippet"] == "The zebra crossing is at the harbour, says Odalys."
    assert [hit["snippet"][first:last] for first, last in hit["marks"]] == ["zebra", "harbour"]


def test_the_older_of_two_contradicting_notes_names_the_newer(api: TestClient, sample: KnowledgeBase) -> None:
    old = sample.remember("The zebra gate listens on port 8080.").ref
    new = sample.remember("The zebra gate listens on port 8081.").ref

    hits = ask(api, "GET", "/search", q="zebra gate port")["hits"]

    assert {hit["ref"]: hit["newer"] for hit in hits if hit["ref"] in (old, new)} == {old: new, new: None}


def test_a_part_of_a_word_is_called_that(api: TestClient) -> None:
    found = ask(api, "GET", "/search", q="emomete")

    assert {word for hit in found["hits"] for word in hit["part_of"]} == {"anemometer"}
    assert found["understood"] == ['no note has the word "emomete": searched for words with this part: "anemometer"']


def test_filters_narrow_a_search(api: TestClient) -> None:
    choices = ask(api, "GET", "/filters")
    tag = next(iter(choices["tags"]))

    tagged = ask(api, "GET", "/search", q="bell", tag=[tag])["hits"]
    articles = ask(api, "GET", "/search", q="bell", source=["article"])["hits"]

    assert choices["sources"] == ["memory", "article", "conversation", "entity", "resource"]
    assert all(tag in hit["tags"] for hit in tagged)
    assert articles
    assert {hit["source"] for hit in articles} == {"article"}
    assert "since must be a date" in ask(api, "GET", "/search", 400, q="bell", since="someday")["error"]["message"]
    assert "source must be one of" in ask(api, "GET", "/search", 400, q="bell", source=["nowhere"])["error"]["message"]


def test_a_filter_that_no_note_passes_is_named_and_is_no_unanswered_question(
    api: TestClient, sample: KnowledgeBase
) -> None:
    def understood(**filters: object) -> list[str]:
        found = ask(api, "GET", "/search", q="bell", **filters)
        assert found["hits"] == []
        return found["understood"]

    assert understood(tag=["nosuch"], source=["article"]) == ["no note passes the filter tag: nosuch"]
    assert understood(source=["conversation"]) == ["no note passes the filter source: conversation"]
    assert understood(since="2090-01-01") == ["no note passes the filter since: 2090-01-01"]
    tag = next(tag for tag in sample.tags("memory") if tag not in sample.tags("article"))
    together = "no note passes all of these filters together: tag, source"
    assert understood(tag=[tag], source=["article"]) == [together]
    assert logged(sample) == []
    ask(api, "GET", "/search", q="zqxzqx", source=["article"])
    assert logged(sample) == [("zqxzqx", "web")]


def test_why_follows_a_note_through_the_search(api: TestClient) -> None:
    asked = {"q": "who decides what ships", "ref": "memory:odalys-has-the-last-word"}

    assert ask(api, "GET", "/why", **asked)["rank"] == 1
    lost = ask(api, "GET", "/why", **asked, source=["article"])
    assert (lost["rank"], lost["lost_in"]) == (None, "filters")


def test_a_rating_is_kept_with_its_question(api: TestClient, sample: KnowledgeBase) -> None:
    rated = ask(api, "POST", "/ratings", ref="memory:odalys-has-the-last-word", good=True, q="who decides")

    assert (rated["query"], rated["good"], rated["how"]) == ("who decides", True, "said")
    with sample.activity.written().reading() as connection:
        assert list(connection.execute("select good from judgements")) == [(1,)]
    assert ask(api, "POST", "/ratings", 404, ref="memory:nothing-like-it", good=True)["error"]["kind"] == "unknown_ref"
