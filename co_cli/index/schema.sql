-- search.db: everything here is derived from files and can be deleted at any time.
-- There are no migrations: another user_version means a new file is built beside this one and swapped in.

-- A vault, or another origin that is read in place beside one: then it has a kind and a name of its own.
create table vaults (
    id integer primary key,
    root text not null,
    kind text not null default 'vault',  -- vault, folder, obsidian or skill
    name text not null default '',       -- what it is called in refs; empty for a vault
    only text not null default '',       -- the one file of the folder that was added, if it was a file
    synced_at real,                      -- when the index last agreed with the files, seconds since 1970
    notes integer not null default 0,    -- counted as they are written: every search says how much it searched
    passages integer not null default 0,
    space_id integer references spaces (id),     -- the space that answers by meaning; null: none yet
    building_id integer references spaces (id),  -- the space that is being built to take its place
    vector_stamp integer not null default 0,     -- another random number whenever a vector of this vault changes
    unique (root, kind, name, only)
) strict;

-- What makes two vectors comparable. Each space has its own table of vectors, `docs_vec` or `docs_vec_<id>`, which
-- index/vectors.py makes: as vec0 where sqlite-vec loads, else as a plain table with the same columns. A vector of the
-- embedded model takes a byte a number there, of others four.
create table spaces (
    id integer primary key,
    provider text not null,
    model text not null,
    dimensions integer not null,
    prompts text not null,
    vector_weight real not null,
    noise real not null,
    hits integer not null default 0,     -- texts whose vector was in the cache
    misses integer not null default 0,   -- texts that had to be embedded
    unique (provider, model, dimensions, prompts)
) strict;

-- Passages that have no vector yet in a space that their vault has or builds. Usually empty.
create table waiting (
    vault_id integer not null references vaults (id),
    space_id integer not null references spaces (id),
    passage_id integer not null references passages (id),
    primary key (vault_id, space_id, passage_id)
) strict, without rowid;

-- Vectors of texts that were embedded before, for all vaults; none of the embedded model, which makes one as fast as it
-- is read here. Bounded: what was used least recently goes first.
create table embedding_cache (
    space_id integer not null references spaces (id),
    hash blob not null,                  -- of the exact text that was embedded
    vector blob,                         -- null: a text without meaning in this space
    used integer not null                -- when it was last used, nanoseconds since 1970
) strict;                                -- with rowids: a vector would not fit into a page of an index

create unique index embedding_cache_by_text on embedding_cache (space_id, hash);
create index embedding_cache_by_use on embedding_cache (used);

-- One row a folder: its listing, as sources/walking.py makes it. Equal bytes mean that nothing changed.
create table folders (
    vault_id integer not null references vaults (id),
    path text not null,
    listing blob not null,
    primary key (vault_id, path)
) strict, without rowid;

-- Files that were indexed and stand in no listing yet: saved since the last sync, or by a sync that was killed.
create table unlisted (
    vault_id integer not null references vaults (id),
    path text not null,
    primary key (vault_id, path)
) strict, without rowid;

-- Every file that a sync looked at, for change detection: what it held, and why it is not indexed or what is wrong.
create table knowledge_files (
    vault_id integer not null references vaults (id),
    path text not null,
    hash text not null,                  -- of the file's bytes
    skipped text,
    problem text,
    primary key (vault_id, path)
) strict, without rowid;

create index knowledge_files_to_report on knowledge_files (vault_id)
where skipped is not null or problem is not null;

-- One row a note.
create table docs (
    id integer primary key,
    vault_id integer not null references vaults (id),
    source text not null,
    path text not null,                  -- inside the vault
    path_key text not null,              -- what names that are one on some file system share; '': the path itself
    ref text not null,
    title text not null,
    description text not null,
    hash text not null,                  -- of the file's bytes
    fingerprint text not null,           -- of the words of its body, to find exact twins
    mtime real not null,
    created real not null,               -- from the frontmatter, else the file's mtime
    tags text not null,                  -- a JSON list
    category text,
    frontmatter text not null,           -- a JSON object: every key can be filtered on
    links text not null,                 -- a JSON list of targets as they are written
    passages integer not null,           -- how many it is cut into
    missing real,                        -- since when its file is gone, where that is kept; null: it is there
    valid_from real,                     -- from when until when it holds, if it says so
    valid_until real,
    superseded_by text,                  -- the note that took its place, as this one names it
    unique (vault_id, path),
    unique (vault_id, ref)
) strict;

-- What a note is called: title, aliases, slug and ref, folded and made a number as index/names.py does it. Names are
-- looked up and never shown; as text they and their index took an eighth of search.db.
create table names (
    vault_id integer not null references vaults (id),
    name integer not null,
    doc_id integer not null references docs (id),
    kind text not null,                  -- title, alias, slug or ref
    primary key (vault_id, name, doc_id)
) strict, without rowid;

create index names_by_doc on names (doc_id);

-- Which notes link to something of this name: the last part of a link, folded, without `.md`.
create table links (
    vault_id integer not null references vaults (id),
    target text not null,
    doc_id integer not null references docs (id),
    primary key (vault_id, target, doc_id)
) strict, without rowid;

create index links_by_doc on links (doc_id);

-- Notes that do not hold for ever, or no longer. Usually empty.
create index docs_with_an_end on docs (vault_id)
where valid_from is not null or valid_until is not null or superseded_by is not null;

-- What a note says that it takes the place of: a title, alias, slug or ref, as in `names`.
create table supersessions (
    vault_id integer not null references vaults (id),
    name integer not null,
    doc_id integer not null references docs (id),
    primary key (vault_id, name, doc_id)
) strict, without rowid;

create index supersessions_by_doc on supersessions (doc_id);

create index docs_by_created on docs (vault_id, source, created);
create index docs_by_vault on docs (vault_id);  -- in the order of the rows: whoever filters reads most of them
create index docs_by_fingerprint on docs (vault_id, fingerprint);
create index docs_by_path_key on docs (vault_id, path_key) where path_key <> '';

-- The unit that is searched. The columns from `title` to `context` are what docs_fts indexes.
create table passages (
    id integer primary key,
    doc_id integer not null references docs (id),
    first_line integer not null,
    last_line integer not null,
    title text not null,
    heading text not null,
    body text not null,
    tags text not null,
    aliases text not null,
    grams text not null,                 -- overlapping pairs of letters of scripts that are written without spaces
    context text not null                -- what stood around it; searched and embedded, never shown
) strict;

create index passages_by_doc on passages (doc_id);

-- Written by hand in the transaction that writes `passages`: triggers cost 2.4 times as much.
-- Marks are letters here (categories Mn, Mc), or unicode61 would break Hindi and Thai words apart.
create virtual table docs_fts using fts5 (
    title, heading, body, tags, aliases, grams, context,
    content = 'passages', content_rowid = 'id',
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);

-- Every word of every passage, for all vaults, with what a rerank compares words by.
create table lexicon (
    word text not null primary key,      -- in lower case
    stem text not null,                  -- as docs_fts has it
    code blob not null                   -- its direction in the embedded model, 1,024 bits; empty: it has none
) strict, without rowid;

create virtual table docs_terms using fts5vocab (docs_fts, row);
