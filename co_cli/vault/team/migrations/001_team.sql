-- What cannot be made again from files: it is never dropped by a rebuild, and belongs into every backup.
-- The truth of a vault is the tree of its commit, and over it the newest text of each path in `changes`.

create table vaults (
    id integer generated always as identity primary key,
    name text not null unique,
    first_commit text,                   -- of the repository: another one may have the same name
    commit text,                         -- which the changes build on; null before the first commit
    trimmed bigint not null default 0,   -- changes up to this one are deleted
    epoch bigint not null default 0,     -- counts the keepers: one with an older epoch may not write
    keeper text,                         -- who keeps it
    behind integer not null default 0,   -- commits of the remote that were not taken over yet
    checked_at double precision,         -- when the keeper last finished its round
    problem text                         -- why it could not push
);

-- Each saved or received text of a file, in order: what other servers have to write, and what git has to get.
create table changes (
    seq bigint generated always as identity primary key,
    vault_id integer not null references vaults,
    path text collate "C" not null,
    data bytea,                          -- null: the file was removed
    before text,                         -- the hash of the text that it replaced
    author text not null,
    saved_at double precision not null,
    version bigint not null,             -- of the index that has it; servers of another version index it again
    commit text,                         -- the commit that has it, which may be made anew until it is pushed
    pushed boolean not null default false,   -- or final, without a remote
    merged boolean not null default false    -- another change has what was to be saved here, and what others pushed
);

create index on changes (vault_id, seq);
create index on changes (vault_id, path, seq);
create index on changes (vault_id, seq) where not pushed;

create table tokens (
    hash text primary key,
    vault_id integer not null references vaults,
    name text not null,
    role text not null check (role in ('read', 'write', 'admin')),
    created text not null,
    unique (vault_id, name)
);

create table audit (
    id bigint generated always as identity primary key,
    vault_id integer not null references vaults,
    moment double precision not null,
    who text not null,
    action text not null,
    path text not null,
    hash text
);

create index on audit (vault_id, id);
create index on audit (vault_id, path, id);
