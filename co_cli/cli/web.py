"""`co web`: open the vault in the browser."""

from __future__ import annotations

import argparse
import sys
import threading
import webbrowser

from co_cli.cli.opening import open_knowledge_base, sync_first
from co_cli.cli.terminal import print_message
from co_cli.ground.errors import InvalidInputError

HOST = "127.0.0.1"
PORT = 8766


def add_web(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, metavar="N", help=f"default {PORT}, or a free one if it is in use")
    parser.add_argument("--clipper", action="store_true", help="show a bookmarklet that saves the page you are reading")
    parser.add_argument("--sign-out", action="store_true", help="sign out all browsers, and end bookmarklets")
    parser.add_argument("--no-open", action="store_true", help="print the address without opening a browser")


def run_web(options: argparse.Namespace) -> int:
    """
    Only this machine can reach the page. The address contains a code that works
    once; when you have used it, another one is printed. A browser stays signed in
    for 30 days, also when co web is started again. Press Ctrl-C to stop.
    A bookmarklet has the port in it: with --port N, or while nothing else uses
    8766, the port stays the same.

    examples:
      co web
      co web --clipper
      co web --vault ~/handbook
      co web --no-open --port 9000
    """
    from co_cli.http import http_server  # imports uvicorn
    from co_cli.server.clip_api import clip_token
    from co_cli.server.web_app import Access, Site, kept_token

    def show(code: str) -> None:
        print_message(f"co web: for another browser: {address}/#code={code}", sys.stderr)

    try:
        listening = http_server.listen(HOST, PORT if options.port is None else options.port)
    except InvalidInputError:
        if options.port is not None:
            raise
        listening = http_server.listen(HOST, 0)
    with listening, open_knowledge_base(options, "web") as kb:
        sync_first(kb)  # otherwise the page of a vault that was never indexed says that there are no notes
        port = listening.getsockname()[1]
        address = f"http://{HOST}:{port}"
        tokens = [make(kb.settings.data_dir, options.sign_out) for make in (kept_token, clip_token)]
        access = Access(show, *tokens)
        site = Site(kb, access, [f"{name}:{port}" for name in (HOST, "localhost")])
        first = f"{address}/{'clipper' if options.clipper else ''}#code={access.code}"
        print_message(f"co web: {kb.root} is at {first}", sys.stderr)
        if not options.no_open:  # in a thread, because a browser that runs in the terminal would block
            threading.Thread(target=webbrowser.open, args=(first,), daemon=True).start()
        http_server.serve(site, listening, site.events.stop_streams)
    return 0
