-- activity.db, version 3: what people and agents said of answers, and the weights that were learned from it.

-- A note, judged as an answer to a question: once for each question, the last word counts. With the candidates as they
-- were ranked, so that other weights can be tried on them without asking again.
create table judgements (
    id integer primary key,
    vault_id integer not null references vaults (id),        -- the vault that was asked
    document_id integer not null references documents (id),  -- what was judged
    folded text not null default '',     -- the question; '': of none, or the log leaves texts out
    query text,                          -- as it was typed; null: of none
    good integer not null check (good in (0, 1)),
    how text not null,                   -- said, opened, cited
    at real not null,
    ref text not null,                   -- what the note was called among the candidates
    space text,                          -- whose vectors ranked them
    meaning real,                        -- the weights that ranked them
    words real,
    candidates text,                     -- JSON: [ref, {signal: part}], best first; null: not asked for
    unique (vault_id, document_id, folded)
) strict;

create index judgements_by_document on judgements (document_id);

-- Each time that weights were learned, refused or taken back.
create table tunings (
    id integer primary key,
    vault_id integer not null references vaults (id),
    at real not null,
    what text not null,                  -- applied, refused, reset
    space text not null,
    meaning real not null,
    words real not null,
    judgements real not null,            -- how many there were, each with its weight
    before real,                         -- what the replay said of the old weights and of these
    after real
) strict;
