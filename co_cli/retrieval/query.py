"""What was typed into what is searched for: words that rank, filters, and what must be there exactly.

Pure, and any text parses. `retrieval/grammar.py` has the operators.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from co_cli.ground.hits import Filters
from co_cli.ground.values import to_utf8
from co_cli.index.tokens import is_stop_word, spaceless_run, spans, tokens
from co_cli.index.word_query import Needle, WordQuery
from co_cli.notes.language import guess_language, read_language
from co_cli.retrieval.grammar import NARROWING, Node, Parsed, leaves, parse_terms
from co_cli.retrieval.matching import Condition

MOST_TERMS = 48
MOST_NAMED = 3
"""Words or folders that one message lists."""
LONGEST_QUERY = 20_000
LONGEST_EMBEDDED = 4_000
"""Characters that are embedded; what follows hardly moves a vector."""
WORDS_BESIDE_QUOTES = 2
"""With this many words around a phrase, it is a question that quotes, not a search for the phrase."""
EDGES = "".join(chr(place) for place in range(33, 128) if not chr(place).isalnum()) + "\u2018\u2019\u201c\u201d\u2026"
WENT_WRONG = re.compile(r"\bwhat went wrong (?=with|in|at|on|during|when)", re.IGNORECASE)
TOPIC = re.compile(
    r"\s*(?:(?:find|show|list|give|get|search)\s+(?:me\s+|for\s+)?)?(?:(?:all|any|my|some|the)\s+)*"
    r"(?:notes?|memor(?:y|ies)|articles?|anything|everything|something)\s+(?:about|on|regarding)\s+(?=\w)",
    re.IGNORECASE,
)
"""What says that notes are wanted, before what they are about."""
ASKS_WHY = re.compile(r"\s*why\b", re.IGNORECASE)
CAUSES = ("why", "because", "cause", "reason", "wrong")
"""Words that are likely in the answer to a question that begins with "why"."""
EMOJI_STYLE = "\ufe0f"
"""Follows an emoji, or does not, and is a letter to tokenizers."""
ELIDING = ("fr", "it", "ca")
"""Languages that write an article and its word together: `l'eau`."""
POSSESSIVE = re.compile(r"['\u2019]s$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Query:
    """One query, taken apart."""

    text: str
    """What is asked, without operators: this is embedded, and looked up as a name."""
    words: WordQuery
    narrowing: tuple[Node, ...] = ()
    """Tags, paths, file names and properties that are wanted, or not."""
    condition: Condition | None = None
    """What else must be there exactly, or must not."""
    spelled: tuple[str, ...] = ()
    """The wanted words as they were typed, and the phrases and exclusions."""
    quoted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """Operators that are words here, and why."""

    @property
    def tags(self) -> tuple[str, ...]:
        return self._values("tag")

    @property
    def paths(self) -> tuple[str, ...]:
        return self._values("path")

    @property
    def files(self) -> tuple[str, ...]:
        return self._values("file")

    @property
    def wanted(self) -> tuple[Node, ...]:
        """The narrowing terms that are not exclusions."""
        return tuple(node for node in self.narrowing if node.kind != "not")

    @property
    def unwanted(self) -> tuple[Node, ...]:
        """Those that are, without their signs."""
        return tuple(node.nodes[0] for node in self.narrowing if node.kind == "not")

    @property
    def plain(self) -> bool:
        """Whether nothing but filters says which passages may answer."""
        return self.condition is None

    @property
    def is_exact(self) -> bool:
        """Whether every hit has something that must be there."""
        return self.condition is not None and any(positive for _, positive in leaves(self.condition.node))

    @property
    def quotes_in_passing(self) -> bool:
        """Whether it says more than what it quotes."""
        node = self.condition.node if self.condition and not self.condition.case else None
        quotes = node.nodes if node and node.kind == "and" else (node,)
        all_quotes = all(quote is not None and quote.kind == "phrase" for quote in quotes)
        return all_quotes and len(self.spelled) >= WORDS_BESIDE_QUOTES

    @property
    def is_choice_of_words(self) -> bool:
        """Whether all that must be there are words around an OR, which may be emphasis."""
        node = self.condition.node if self.condition else None
        return node is not None and node.kind == "or" and all(leaf.kind == "word" for leaf, _ in leaves(node))

    def in_languages(self, languages: Sequence[str]) -> Query:
        """The same with its words as passages in these languages have them, too."""
        return replace(self, words=self.words.in_languages(languages)) if languages else self

    def narrow(self, filters: Filters) -> Filters:
        """The filters with what the query adds to them."""
        any_of = filters.any_tag and filters.tags  # one of those is enough: these would be one more of them
        others = dict(filters.others)
        for node in self.narrowing:
            name, value = _filter_of(node)
            if name in Filters._fields:
                had = getattr(filters, name)
                filters = filters._replace(**{name: had if name == "tags" and any_of else (*had, value)})
            else:
                others[name] = (*others.get(name, ()), value)
        return filters._replace(others=tuple(sorted(others.items())))

    def _values(self, name: str) -> tuple[str, ...]:
        return tuple(node.text for node in self.wanted if node.kind == name)


def filters_for(node: Node) -> Filters:
    """Filters that require this one term."""
    return Query("", WordQuery(), (node,)).narrow(Filters())


def _filter_of(node: Node) -> tuple[str, str | tuple[str, str]]:
    """The filter that a term is, and its value."""
    match node.kind:
        case "not":
            name, value = _filter_of(node.nodes[0])
            return f"without_{name}", value
        case "property":
            return "fields", (node.name, node.text)
        case "key":
            return "keys", node.name
        case "lang":
            return "languages", read_language(node.text)
        case _:
            return f"{node.kind}s", node.text


@lru_cache(64)  # each search takes its query apart several times
def parse(text: str, prefix: bool = False, case: bool = False, operators: bool = True) -> Query:
    """Take a query apart. With `prefix`, its last word may be the beginning of one; with `case`, words are exact."""
    text = WENT_WRONG.sub("why ", to_utf8(text)[:LONGEST_QUERY].replace("\0", " "))
    text = text[found.end() :] if (found := TOPIC.match(text)) else text
    parsed = parse_terms(text) if operators else Parsed(tuple(Node("word", word) for word in text.split()))
    terms = tuple(dict.fromkeys(parsed.terms))
    if terms and all(_refuses(term) == "phrase" for term in terms):
        if not any(map(str.isalnum, text)):  # an arrow
            return parse(text, prefix, case, operators=False)
        return parse(re.sub(r"(?<!\S)-", " ", text), prefix, case)  # nothing is wanted: it is not an exclusion
    language = guess_language(text)
    loose = [term.text for term in parsed.terms if term.kind == "word"]
    signs = _signs(loose)
    spelled = [] if signs else _wanted(loose, language)
    narrowing = [term for term in terms if _narrows(term)]
    rest = [term for term in terms if term.kind != "word" and not _narrows(term)]
    exact = [node for term in rest if (node := _compared(term)) is not None]
    exact += [Node("phrase", word) for word in (signs or spelled) if case or signs]
    wanted = [leaf for node in exact for leaf, positive in leaves(node) if positive]
    quoted = [leaf.text for leaf in wanted if leaf.kind == "phrase"][:MOST_TERMS]
    words = _wanted([*loose, *(leaf.text for leaf in wanted if leaf.kind == "word")], language)
    needles = [(word, _needle(word)) for word in words] + [(text, _phrase(text)) for text in quoted]
    typed = {
        span.token: part[span.start : span.end]
        for part, needle in needles
        for span in spans(part)
        if span.token in needle
    }
    counted = dict(list(typed.items())[:MOST_TERMS])
    asked = [leaf for term in parsed.terms for leaf, positive in leaves(term) if positive]
    return Query(
        text=" ".join(leaf.text for leaf in asked if leaf.kind in ("word", "phrase")),
        words=WordQuery(
            terms=tuple(counted),
            typed=tuple(counted.values()),
            prefixes=_prefixes(loose, prefix and not text[-1:].isspace()),
            hints=tuple(token for word in CAUSES for token in tokens(word)) if ASKS_WHY.match(text) else (),
        ),
        narrowing=tuple(narrowing),
        condition=_condition(exact, case),
        spelled=tuple(spelled),
        quoted=tuple(quoted),
        refused=tuple(node.nodes[0].text for node in exact if _refuses(node) == "phrase"),
        # what is being typed is not complete
        remarks=(*parsed.remarks, *([parsed.broken] if parsed.broken and not prefix else ())),
    )


def _refuses(node: Node) -> str:
    """The kind of what a term excludes; nothing if it is not an exclusion."""
    return node.nodes[0].kind if node.kind == "not" else ""


def _narrows(node: Node) -> bool:
    return (_refuses(node) or node.kind) in NARROWING


def _condition(nodes: Sequence[Node], case: bool) -> Condition | None:
    kept = [node for node in nodes if node.kind != "not"][:MOST_TERMS]
    kept += [node for node in nodes if node.kind == "not"][:MOST_TERMS]
    return Condition(kept[0] if len(kept) == 1 else Node("and", nodes=tuple(kept)), case) if kept else None


def _compared(node: Node) -> Node | None:
    """A term without punctuation; None if that is all."""
    if node.kind == "word":
        word = next(iter(_wanted([node.text], "")), "")
        return Node("word", word) if _needle(word) else None
    members = map(_telling, node.nodes) if node.kind == "or" else node.nodes
    kept = tuple(compared for member in members if (compared := _compared(member)) is not None)
    if node.nodes and not kept:
        return None
    return kept[0] if node.kind in ("and", "or") and len(kept) == 1 else node._replace(nodes=kept)


def _telling(node: Node) -> Node:
    """One side of an OR without stop words: what stands there may be a question."""
    kept = tuple(member for member in node.nodes if not (member.kind == "word" and is_stop_word(member.text)))
    return node._replace(nodes=kept) if node.kind == "and" and kept else node


def needles_in(leaf: Node, languages: Iterable[str]) -> set[Needle]:
    """The tokens by which an index finds what has a word or phrase, in English and other languages; none if it has no
    letters or digits."""
    needle = _needle if leaf.kind == "word" else _phrase
    return {found for language in ("", *languages) if (found := needle(leaf.text, language))}


def _wanted(parts: list[str], language: str) -> list[str]:
    """The words of what is wanted, without stop words unless there is nothing else."""
    bare = [POSSESSIVE.sub("", part.strip(EDGES)) for part in parts]
    if language in ELIDING:
        bare = [word for part in bare for word in re.split("['\u2019]", part)]
    telling = [word for word in bare if word and not is_stop_word(word, language) and _needle(word)]
    return telling or list(filter(None, bare))


def _signs(words: Sequence[str]) -> list[str]:
    """Emoji, `++` and other words that no tokenizer keeps, if there are no others: they are looked up as text."""
    plain = [word.replace(EMOJI_STYLE, "") for word in words]
    if any(tokens(word) for word in plain):
        return []
    return [word for word in plain if len(word) > 1 or (word and not word.isascii())]


def _needle(text: str, language: str = "") -> Needle:
    """The tokens of a text that is looked for: of a run without spaces, every pair of letters."""
    return tuple(token for token in tokens(text, language) if not _is_lone(token))


def _phrase(text: str, language: str = "") -> Needle:
    """The same of a phrase: only its end may be the middle of a longer run."""
    found = tokens(text, language)
    return tuple(found[:-1] if found and _is_lone(found[-1]) else found)


def _is_lone(token: str) -> bool:
    """Whether this is the last letter of a run, which stands alone in the index so that it can be found by itself."""
    return len(token) == 1 and not token.isascii() and spaceless_run().fullmatch(token) is not None


def _prefixes(parts: list[str], last: bool) -> tuple[str, ...]:
    """Beginnings: single letters of scripts without spaces, and with `last` the word that is being typed."""
    others = [unicodedata.normalize("NFKC", part) for part in parts if not part.isascii()]
    found = [run for part in others for run in spaceless_run().findall(part) if len(run) == 1]
    word = parts[-1].strip(EDGES) if parts and last else ""
    if word:
        found += [word.lower().rpartition("-")[2], *tokens(word)[-1:]]
    return tuple(dict.fromkeys(start for start in found if start and start.isalnum()))
