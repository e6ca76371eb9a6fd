"""The storage contract as functions over the tables that every engine has.

An engine adds to it how it runs statements, and the functions of its word index and its vectors.
"""

from __future__ import annotations

from co_cli.index.tables import note_rows, spaces


class TableTransaction:
    """The methods of a transaction that are the same for every engine."""

    words = note_rows.search_words
    containing = note_rows.find_containing
    named = note_rows.find_named
    names_of = note_rows.read_names
    names_like = note_rows.find_names_like
    list_notes = note_rows.list_notes
    outline = note_rows.outline_notes
    find_notes = note_rows.find_notes
    passages = note_rows.open_passages
    beginnings = note_rows.read_beginnings
    languages = note_rows.list_languages
    conversations = note_rows.find_conversations
    validities = note_rows.read_validities
    files = note_rows.list_files
    counts = note_rows.count_sources
    listings = note_rows.read_listings
    add_vault = note_rows.add_vault
    put_files = note_rows.put_files
    drop_files = note_rows.drop_files
    finish_sync = note_rows.finish_sync

    vault = spaces.find_vault
    vaults = spaces.list_vaults
    waiting = spaces.list_waiting
    is_waiting = spaces.is_waiting
    cached = spaces.find_cached
    cache_state = spaces.read_cache_state
    begin_space = spaces.begin_space
    reembed = spaces.reembed
    put_vectors = spaces.put_vectors
    cache = spaces.put_cached
    drop_unused_cached = spaces.drop_unused_cached
