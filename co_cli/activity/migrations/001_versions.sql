-- activity.db, version 1: what became of each document. Nothing here can be made again from the files.
-- A document is known by its vault's folder and its path there, never by a number of search.db.

create table vaults (
    id integer primary key,
    root text not null unique,
    seen real                            -- when all of its documents were first written down; null: not yet
) strict;

create table documents (
    id integer primary key,
    vault_id integer not null references vaults (id),
    path text not null,                  -- inside the vault; of another origin, its ref
    hash text,                           -- of its head; null: only its use is known
    title text not null default '',
    size integer,
    updated real,                        -- when the head was seen first
    gone real,                           -- since when it is no longer there
    unique (vault_id, path)
) strict;

create index documents_by_hash on documents (vault_id, hash);

-- Every head that a document had, the present one too. A row is written when something happens, and never changed.
create table versions (
    id integer primary key,
    document_id integer not null references documents (id),
    at real not null,
    what text not null,                  -- seen, created, updated, moved, removed, restored
    hash text,
    title text not null default '',
    size integer,
    before text                          -- of a move: the path it had
) strict;

create index versions_by_document on versions (document_id, at);
