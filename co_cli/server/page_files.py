"""The page's own files: sent compressed, under a path with their hash, so that a browser keeps them forever."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
import re
from functools import lru_cache
from html import escape
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

FOLDER = Path(__file__).resolve().parent / "page"
FOR_EVER = "public, max-age=31536000, immutable"
IMPORTED = re.compile(r'(?:\bfrom|^import) "(\.[^"]+\.js)"', re.M)
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".md": "text/markdown"}


def current_hash() -> str:
    """The hash of all files, which is part of their addresses."""
    files = sorted(file for file in FOLDER.rglob("*") if file.is_file())
    return _hash(tuple((str(file), file.stat().st_mtime_ns) for file in files))


async def send_frame(request: Request) -> Response:
    """index.html, whose addresses have the present hash, with what the wanted view imports, to be fetched at once."""
    view = request.path_params["rest"].partition("/")[0] or "search"
    edits = view == "note" and ("edit" in request.query_params or request.url.path == "/note/")
    hash_of_all = current_hash()
    html = _frame(view, edits, hash_of_all).replace('"/page/', f'"/page/{hash_of_all}/')
    if team := getattr(request.app.state, "team", ""):  # people sign in to it, so they see its name before
        html = html.replace("<html ", f'<html data-team="{escape(team)}" ', 1)
    return Response(html, media_type="text/html")


async def send_clip_window(request: Request) -> Response:
    """The window that a bookmarklet opens. It stays connected with its opener, who hands over the page."""
    html = (FOLDER / "clip.html").read_text("utf-8").replace('"/page/', f'"/page/{current_hash()}/')
    return Response(html, media_type="text/html", headers={"cross-origin-opener-policy": "unsafe-none"})


async def send_file(request: Request) -> Response:
    """A file of the page. Under an old hash, or none, it is sent as it is now, and not kept."""
    hash_of_all = current_hash()
    wanted = request.path_params["rest"]
    kept = wanted.startswith(f"{hash_of_all}/")
    file = FOLDER / wanted.removeprefix(f"{hash_of_all}/")
    if not kept and not file.is_file():
        file = FOLDER / wanted.partition("/")[2]  # of a page that was opened before an update
    if ".." in file.parts or not file.is_relative_to(FOLDER) or not file.is_file():
        return PlainTextResponse("There is no such file", 404)
    headers = {"cache-control": FOR_EVER if kept else "no-cache", "vary": "Accept-Encoding"}
    zipped = "gzip" in request.headers.get("accept-encoding", "")
    if zipped:
        headers["content-encoding"] = "gzip"
    content = _zipped(file, hash_of_all) if zipped else file.read_bytes()
    kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    return Response(content, headers=headers, media_type=kind)


@lru_cache(maxsize=40)
def _frame(view: str, edits: bool, hash_of_all: str) -> str:
    html = (FOLDER / "index.html").read_text("utf-8")
    views = [name for name in (view, *(["edit"] if edits else [])) if (FOLDER / "views" / f"{name}.js").is_file()]
    modules: dict[Path, None] = {}
    waiting = [FOLDER / "app.js", *(FOLDER / "views" / f"{name}.js" for name in views)]
    while waiting:
        module = waiting.pop(0)
        if module not in modules:
            modules[module] = None
            waiting += [(module.parent / name).resolve() for name in IMPORTED.findall(module.read_text("utf-8"))]
    paths = [module.relative_to(FOLDER).as_posix() for module in modules if module.name != "app.js"]
    links = [f'<link rel="modulepreload" href="/page/{path}">' for path in paths]
    links += [f'<link rel="preload" as="style" href="/page/styles/{name}.css">' for name in views]
    return html.replace("<script", "\n".join((*links, "<script")), 1)


@lru_cache(maxsize=4)
def _hash(files: tuple[tuple[str, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, _ in files:
        digest.update(Path(name).read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=200)
def _zipped(file: Path, hash_of_all: str) -> bytes:
    return gzip.compress(file.read_bytes(), 9)
