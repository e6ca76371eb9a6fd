pragma application_id = 1668243811;
pragma user_version = 9;
CREATE TABLE vaults (
    id integer primary key,
    root text not null unique,
    seen real                            -- when all of its documents were first recorded; null: not yet
) strict;
CREATE TABLE documents (
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
CREATE INDEX documents_by_hash on documents (vault_id, hash);
CREATE TABLE versions (
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
CREATE INDEX versions_by_document on versions (document_id, at);
CREATE TABLE uses (
    document_id integer primary key references documents (id),
    recalls integer not null default 0,  -- answers that contained it
    recalled real,                       -- the last time
    opens integer not null default 0,
    opened real,
    led real                             -- the last time it was the first hit of an answer
) strict;
CREATE TABLE searches (
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
CREATE INDEX searches_by_time on searches (vault_id, at);
CREATE TABLE turns (
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
CREATE INDEX turns_by_time on turns (vault_id, at);
CREATE TABLE judgements (
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
CREATE INDEX judgements_by_document on judgements (document_id);
CREATE TABLE conversations (
    document_id integer primary key references documents (id),
    line integer not null,               -- of its text, the last that was read
    hash text not null,                  -- of everything up to that line
    failures integer not null            -- in a row, with the turns that follow
) strict;
CREATE TABLE facets (
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
CREATE INDEX facets_by_document on facets (document_id, kind, folded);
CREATE TABLE extractions (
    id integer primary key,
    vault_id integer not null references vaults (id),
    at real not null,
    model text not null,
    tokens integer not null,
    facets integer not null,
    refused integer not null,            -- facets that their lines do not support
    problem text                         -- null: none
) strict;
CREATE INDEX extractions_by_time on extractions (vault_id, at);
CREATE TABLE spool (
    id integer primary key check (id = 1),
    name text not null
) strict;
insert into vaults values (1, '{root}/vault', 1794957132.0537033);
insert into vaults values (2, '{root}/handbook', 1794957137.1071765);
insert into vaults values (3, '{root}/project/.co-cli/knowledge', NULL);
insert into documents values (1, 1, 'articles/deploys.md', '14beb19bb58ed2ff77d052d8f13810e7', 'Deploys', 82, 1794957132.0537033, NULL);
insert into documents values (2, 1, 'memories/oak.md', '797855419d3ec3411da27e08ac783dac', 'Oaks', 75, 1794957132.0537033, NULL);
insert into documents values (3, 1, 'memories/kettle.md', 'f7783939c1a98909d13ea9e149c92b7d', 'Kettle', 161, 1794957136.2461011, NULL);
insert into documents values (4, 1, 'memories/elm.md', 'c2683828935fb4e7a200e16bb4afcf9d', 'Elm', 112, 1794957133.5168078, 1794957136.649972);
insert into documents values (5, 1, 'entities/mara.md', 'ae91aec62340fa41a6e486be5de0c8db', 'Mara', 119, 1794957134.149876, NULL);
insert into documents values (6, 1, 'conversations/trees.md', 'c08fbfc6b0d197bf33fae7320d0c81e6', 'Trees', 110, 1794957134.781312, NULL);
insert into documents values (7, 1, 'resources/guide.md', '7abe5f7865894c4bbcfeac93f815d080', 'Guide', 124, 1794957135.348388, NULL);
insert into documents values (8, 2, 'onboarding.md', '779d40f294345c825a16420d5f1616f2', 'Onboarding', 62, 1794957137.1071765, NULL);
insert into documents values (9, 3, 'memories/deploys-wait-for-mondays.md', '6b31de51f6f09491785086d6f4822fa0', 'Deploys wait for Mondays', 126, 1794957141.1293094, NULL);
insert into versions values (1, 1, 1794957132.0537033, 'seen', '14beb19bb58ed2ff77d052d8f13810e7', 'Deploys', 82, NULL, NULL);
insert into versions values (2, 2, 1794957132.0537033, 'seen', '797855419d3ec3411da27e08ac783dac', 'Oaks', 75, NULL, NULL);
insert into versions values (3, 3, 1794957132.8889065, 'created', '431d6f352ecb2704a8bea560b3f34f52', 'Kettle', 129, NULL, 'cli');
insert into versions values (4, 4, 1794957133.5168078, 'created', 'c2683828935fb4e7a200e16bb4afcf9d', 'Elm', 112, NULL, 'cli');
insert into versions values (5, 5, 1794957134.149876, 'created', 'ae91aec62340fa41a6e486be5de0c8db', 'Mara', 119, NULL, 'cli');
insert into versions values (6, 6, 1794957134.781312, 'created', 'c08fbfc6b0d197bf33fae7320d0c81e6', 'Trees', 110, NULL, 'cli');
insert into versions values (7, 7, 1794957135.348388, 'created', '7abe5f7865894c4bbcfeac93f815d080', 'Guide', 124, NULL, 'cli');
insert into versions values (8, 3, 1794957135.8100655, 'updated', 'd432ad466fe6386a68573468ee6f75b6', 'Kettle', 156, NULL, 'cli');
insert into versions values (9, 3, 1794957136.2461011, 'updated', 'f7783939c1a98909d13ea9e149c92b7d', 'Kettle', 161, NULL, 'cli');
insert into versions values (10, 4, 1794957136.649972, 'removed', 'c2683828935fb4e7a200e16bb4afcf9d', 'Elm', 112, NULL, 'cli');
insert into versions values (11, 8, 1794957137.1071765, 'seen', '779d40f294345c825a16420d5f1616f2', 'Onboarding', 62, NULL, NULL);
insert into versions values (12, 9, 1794957141.1293094, 'created', '6b31de51f6f09491785086d6f4822fa0', 'Deploys wait for Mondays', 126, NULL, 'cli');
insert into uses values (1, 1, 1794957137.7745533, 0, NULL, NULL);
insert into uses values (2, 1, 1794957137.7745533, 0, NULL, NULL);
insert into uses values (3, 1, 1794957137.7745533, 1, 1794957138.118494, 1794957137.7745533);
insert into searches values (1, 1, 1794957137.7745533, 'cli', 'where is the kettle', 'where is the kettle', 'hybrid', 'found', 3, 11.2, NULL, '[["memory:kettle", 0.8406], ["article:deploys#L1-3", 0.0541], ["memory:oak", 0.0266]]');
insert into turns values (1, 1, 1794957139.3474457, 'claude-code', 's1', NULL, 0, 0, '[]', NULL, 'where is the kettle?', NULL);
insert into judgements values (1, 1, 3, 'where is the kettle', 'where is the kettle', 1, 'said', 1794957138.530741, 'memory:kettle');
insert into judgements values (2, 1, 2, 'where is the kettle', 'where is the kettle', 0, 'said', 1794957138.9350548, 'memory:oak');
insert into spool values (1, 'activity.spool.18e8f80227788f5e');
