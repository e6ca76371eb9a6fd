-- activity.db: the history of notes, how they are used, and feedback. Nothing here can be made again from the files.
-- A document is identified by the folder of its vault and its path there, never by a number of search.db.
--
-- `pragma user_version` is the number of the last file of this folder that ran. To change the schema, add a file with the
-- next number, and change none that was released. A version before 9 was never released.

create table vaults (
    id integer primary key,
    root text not null unique,
    seen real                            -- when all of its documents were first recorded; null: not yet
) strict;

create table documents (
    id integer primary key,
    vault_id integer not null references vaults (id),
    path text not null,                  -- inside the vault; of another origin, its ref
    hash text,                           -- of its current version; null: only its use is known
    title text not null default '',
    size integer,
    updated real,                        -- when the current version was first seen
    gone real,                           -- since when it is no longer there
    unique (vault_id, path)
) strict;

create index documents_by_hash on documents (vault_id, hash);

-- Every version of a document, the current one too. Rows are never changed, but the last one while the page edits it.
create table versions (
    id integer primary key,
    document_id integer not null references documents (id),
    at real not null,
    what text not null,                  -- seen, created, updated, moved, removed, restored
    hash text,
    title text not null default '',
    size integer,
    before text,                         -- of a move: the previous path
    front_end text                       -- that saved it; null: the file was changed outside of co
) strict;

create index versions_by_document on versions (document_id, at);

create table uses (
    document_id integer primary key references documents (id),
    recalls integer not null default 0,  -- answers that contained it
    recalled real,                       -- the last time
    opens integer not null default 0,
    opened real,
    led real                             -- the last time it was the first hit of an answer
) strict;

-- The query log. Bounded: the oldest rows go first.
create table searches (
    id integer primary key,
    vault_id integer not null references vaults (id),
    at real not null,
    front_end text not null,             -- cli, agent, mcp, chat, web, python
    text text,                           -- as typed; null: the log leaves texts out
    folded text,                         -- without differences of case and spacing
    backend text not null,
    state text not null,                 -- found, absent, inconclusive
    hits integer not null,
    took_ms real not null,
    degraded text,                       -- what was missing, in words
    results text                         -- JSON: refs and scores of the first; null: the log leaves texts out
) strict;

create index searches_by_time on searches (vault_id, at);

-- Prompts of agents, the notes that were added to them, and those that answers cite. Bounded like the log.
create table turns (
    id integer primary key,
    vault_id integer not null references vaults (id),
    at real not null,
    front_end text not null,
    conversation text,                   -- null: the front end has no name for it
    run text,                            -- of the agent, to add citations to what it was given
    notes integer not null,              -- that were added to the prompt
    tokens integer not null,             -- of these notes
    injected text,                       -- JSON: ref, reason and tokens of each; null: the log leaves texts out
    cited text,                          -- JSON: refs; null: none, or not known
    prompt text,                         -- what the person asked; null: the log leaves texts out
    given text                           -- exactly what was added to the prompt; null: the same
) strict;

create index turns_by_time on turns (vault_id, at);

-- A note rated as the answer to a question, once for each question.
create table judgements (
    id integer primary key,
    vault_id integer not null references vaults (id),        -- the vault that was searched
    document_id integer not null references documents (id),  -- the note
    folded text not null default '',     -- the question; '': none, or the log leaves texts out
    query text,                          -- as typed
    good integer not null check (good in (0, 1)),
    how text not null,                   -- said, heard, opened, cited
    at real not null,
    ref text not null,
    unique (vault_id, document_id, folded)
) strict;

create index judgements_by_document on judgements (document_id);

-- How far each conversation was read for facets.
create table conversations (
    document_id integer primary key references documents (id),
    line integer not null,               -- of its text, the last that was read
    hash text not null,                  -- of everything up to that line
    failures integer not null            -- in a row, with the turns that follow
) strict;

-- What was understood from conversations. A facet is found once, and keeps its row whatever was decided about it.
create table facets (
    id text primary key,                 -- a hash of the conversation, the lines, the kind and the words
    document_id integer not null references documents (id),  -- the conversation
    at real not null,
    kind text not null,                  -- preference, fact, decision, correction, procedure, person, feedback
    text text not null,
    folded text not null,                -- without differences of case, spacing and punctuation
    first_line integer not null,
    last_line integer not null,
    detail text not null,                -- JSON: validity, confidence, speaker, relation to a known memory
    state text not null,                 -- waiting, proposed, saved, known, noted, dismissed
    ref text                             -- the memory that it became, or that says it already
) strict;

create index facets_by_document on facets (document_id, kind, folded);

-- What extraction cost: a row for each request of a model, or for each that failed.
create table extractions (
    id integer primary key,
    vault_id integer not null references vaults (id),
    at real not null,
    model text not null,
    tokens integer not null,
    facets integer not null,
    refused integer not null,            -- facets that their lines do not support
    problem text                         -- null: none
) strict;

create index extractions_by_time on extractions (vault_id, at);

-- The spool file that was read last: after a crash before the file is removed, its searches are not counted again.
create table spool (
    id integer primary key check (id = 1),
    name text not null
) strict;
