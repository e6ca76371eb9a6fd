"""The clipper: a bookmarklet, with a token that can only save what a browser shows, and the route that saves it."""

from __future__ import annotations

import os
import secrets
from typing import Any, NamedTuple

from pydantic import BaseModel

from co_cli.entrance.local import LocalKnowledgeBase
from co_cli.ground.errors import InvalidInputError
from co_cli.notes.files import change_json, read_json
from co_cli.saving.web_pages import PageOutcome
from co_cli.server.attachment_api import LARGEST_BODY
from co_cli.server.routes import CLIP_TOKEN, is_owner, route
from co_cli.tools.guidance import vault_name
from co_cli.vault.tiers import is_own_vault

CLIPS = "/clips"


class ClipTarget(NamedTuple):
    """Where clips are saved."""

    vault: str
    """Its name."""
    largest: int
    """Bytes of HTML."""


class Clip(BaseModel):
    """A page as a browser shows it. If something is selected, only that is saved."""

    url: str
    title: str = ""
    html: str = ""
    selection: str = ""
    """HTML as well."""


class ClipReceipt(NamedTuple):
    """The outcome for one clip, without paths and texts: its token cannot read."""

    outcome: PageOutcome
    ref: str


class ClipToken(NamedTuple):
    token: str


def clip_token(data_dir: str, renew: bool = False) -> str:
    """The token in bookmarklets, which stays until the browsers are signed out (`renew`)."""
    file, token = os.path.join(data_dir, "clip-token.json"), secrets.token_urlsafe(32)

    def keep(state: dict[str, Any]) -> None:
        known = state.get("token")
        if renew or not isinstance(known, str) or len(known) < len(token):
            state["token"] = token

    change_json(file, keep)
    return str(read_json(file)["token"])


@route("GET", "/clipper", role="admin")
def show_clip_token(kb: LocalKnowledgeBase) -> ClipToken:
    """Show the token for the bookmarklet of `co web`."""
    if not is_owner():
        raise InvalidInputError("`co serve` has no clipper: `co add URL` saves a page")
    return ClipToken(CLIP_TOKEN.get())


@route("GET", CLIPS, role="clip")
def show_clip_target(kb: LocalKnowledgeBase) -> ClipTarget:
    """Show where a clip is saved, and how large it may be."""
    name = "Your notes" if is_own_vault(kb.root) else vault_name(kb)
    return ClipTarget(name, min(kb.settings.web_max_bytes, LARGEST_BODY))


@route("POST", CLIPS, role="clip")
def save_clip(kb: LocalKnowledgeBase, asked: Clip) -> ClipReceipt:
    """Save the main text of a page, or the selected part of it, as a browser shows it. Nothing is fetched."""
    receipt = kb.web_pages().clip(asked.url, asked.html, asked.title, asked.selection)
    if receipt.ref is None:
        raise InvalidInputError(receipt.detail)
    return ClipReceipt(receipt.outcome, receipt.ref)
