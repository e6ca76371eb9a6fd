-- search.db: everything here comes from files and can be deleted at any time.
-- There are no migrations: a file of another version is replaced and filled again from your notes.

-- A vault, or another folder that is searched with one.
create table vaults (
    id integer primary key,
    root text not null,
    source text not null,                -- vault, folder, obsidian or skill
    name text not null,                  -- what it is called in refs; empty for a vault
    only_file text not null,             -- the one file that was added, if it was a file
    synced_at real,                      -- when the index last agreed with the files, seconds since 1970
    notes integer not null default 0,
    passages integer not null default 0,
    space_id integer references spaces (id),     -- the space that answers; null: none yet
    building_id integer references spaces (id),  -- the space that is being built to replace it
    floor_id integer references spaces (id),     -- a space that is always kept, and answers while others lack vectors
    vector_stamp integer not null default 0,     -- changes whenever a vector of this vault changes
    unique (root, source, name, only_file)
) strict;

-- Each vault has its own word index, so that word statistics of one vault do not depend on another:
-- `docs_fts` for the first vault, `docs_fts_2` for the second, ... They hold tokens, made by index/tokens.py:
--   create virtual table docs_fts using fts5 (
--       title, heading, body, tags, aliases, path, fields, context,
--       content = '', contentless_delete = 1, tokenize = 'ascii'
--   );

-- What makes two vectors comparable. Each space has its own vector table, `docs_vec` for the first, `docs_vec_2`, ...:
--   create virtual table docs_vec using vec0 (
--       part text partition key, embedding int8[256] distance_metric=cosine, chunk_size=128
--   );
-- Vectors of the embedded model are stored as int8, others as float. Where sqlite-vec cannot be loaded, a plain table
-- with the same columns takes its place.
create table spaces (
    id integer primary key,
    provider text not null,
    model text not null,
    dimensions integer not null,
    prompts text not null,
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

-- Vectors of texts that were embedded before, for all vaults, as they are stored in the vector tables.
create table embedding_cache (
    space_id integer not null references spaces (id),
    hash blob not null,                  -- of the exact text that was embedded
    vector blob,                         -- null: a text without meaning in this space
    used integer not null,               -- when it was last used, nanoseconds since 1970
    primary key (space_id, hash)
) strict;

create index embedding_cache_by_use on embedding_cache (used);

-- One row for each folder: its listing, as sources/walking.py makes it. Equal bytes mean that nothing changed.
create table folders (
    vault_id integer not null references vaults (id),
    path text not null,
    listing blob not null,
    primary key (vault_id, path)
) strict, without rowid;

-- Files that were indexed and are in no listing yet: saved since the last sync, or by a sync that was killed.
create table unlisted (
    vault_id integer not null references vaults (id),
    path text not null,
    primary key (vault_id, path)
) strict, without rowid;

-- Every file that a sync looked at: its hash, and why it is not indexed or what is wrong with it.
create table knowledge_files (
    vault_id integer not null references vaults (id),
    path text not null,
    hash text not null,
    skipped text,
    problem text,
    primary key (vault_id, path)
) strict, without rowid;

create index knowledge_files_to_report on knowledge_files (vault_id)
where skipped is not null or problem is not null;

-- One row for each note.
create table docs (
    id integer primary key,
    vault_id integer not null references vaults (id),
    source text not null,
    path text not null,                  -- inside the vault
    path_key text not null,              -- folded: what two spellings of one path share
    file_key text not null,              -- the same of the file name alone
    ref text not null,
    title text not null,
    description text not null,
    hash text not null,                  -- of the file's bytes
    fingerprint text not null,           -- of the words of its body, to find exact duplicates
    mtime real not null,
    created real not null,               -- from the frontmatter, else the file's mtime
    tags text not null,                  -- a JSON list, folded
    aliases text not null,               -- aliases and description, as one text
    category text,
    fields text not null,                -- a JSON list: key, tab and folded value of each field; without a key, the speaker
    properties text not null,            -- the same as people read it, a line for each
    frontmatter text not null,           -- a JSON object, as it was read
    links text not null,                 -- a JSON list of targets as they are written
    missing real,                        -- since when its file is gone; null: it is there
    valid_from real,
    valid_until real,
    superseded_by text,                  -- the note that replaced it, as this one names it
    unique (vault_id, path),
    unique (vault_id, ref)
) strict;

create index docs_by_created on docs (vault_id, source, created);
create index docs_by_fingerprint on docs (vault_id, fingerprint);
create index docs_by_path_key on docs (vault_id, path_key);
create index docs_with_an_end on docs (vault_id)
where valid_from is not null or valid_until is not null or superseded_by is not null;
create index docs_missing on docs (vault_id) where missing is not null;

-- What a note is called: title, aliases, file name and ref, folded by index/names.py.
create table names (
    vault_id integer not null references vaults (id),
    name text not null,
    doc_id integer not null references docs (id),
    kind text not null,                  -- title, alias, slug, path or ref
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

-- What a note says that it supersedes, by a name as in `names`.
create table supersessions (
    vault_id integer not null references vaults (id),
    name text not null,
    doc_id integer not null references docs (id),
    primary key (vault_id, name, doc_id)
) strict, without rowid;

create index supersessions_by_doc on supersessions (doc_id);

-- The unit that is searched: a whole memory, or a section of an article.
create table passages (
    id integer primary key,
    doc_id integer not null references docs (id),
    vault_id integer not null references vaults (id),
    first_line integer not null,
    last_line integer not null,
    heading text not null,
    body text not null,
    context text not null,               -- its neighbours' nearest words: searched and embedded, never shown
    said real,                           -- when, in a conversation; null: when its note was created
    language text not null               -- a code such as `de`, in whose stems its words are indexed; empty: not known
) strict;

create index passages_by_doc on passages (doc_id);
create index passages_by_language on passages (vault_id, language) where language not in ('', 'en');
