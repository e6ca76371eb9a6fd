-- activity.db, version 2: how documents are used, and what was asked for.

create table uses (
    document_id integer primary key references documents (id),
    recalls integer not null default 0,  -- answers that had it
    recalled real,                       -- the last one
    opens integer not null default 0,
    opened real
) strict;

-- Each text that was asked for, once a vault. It goes with the last row of the log that has it.
create table questions (
    id integer primary key,
    vault_id integer not null references vaults (id),
    folded text not null,                -- case and spacing do not make another question
    text text not null,                  -- as it was typed first
    asked integer not null,              -- rows of the log
    unique (vault_id, folded)
) strict;

-- The query log, one row a search. Bounded: the oldest go first.
create table queries (
    id integer primary key,
    vault_id integer not null references vaults (id),
    at real not null,
    day integer not null,                -- days since 1970, UTC
    question_id integer references questions (id),   -- null: the log leaves texts out
    door text not null,                  -- cli, agent, mcp, chat, python
    backend text not null,
    state text not null,                 -- found, absent, inconclusive
    hits integer not null,
    took_ms real not null,
    degraded text,                       -- what was missing, in words
    results text                         -- JSON: refs and scores of the first; null: the log leaves texts out
) strict;

create index queries_by_question on queries (vault_id, question_id, day);
create index queries_without_answer on queries (vault_id, question_id, day) where state <> 'found';
create index queries_by_time_taken on queries (vault_id, day, took_ms);

-- Kept as rows are written, so that nobody has to count a million of them. They outlive the rows.
create table days (
    vault_id integer not null references vaults (id),
    day integer not null,
    searches integer not null,
    unanswered integer not null,         -- state is not found
    degraded integer not null,
    primary key (vault_id, day)
) strict, without rowid;

create table latencies (
    vault_id integer not null references vaults (id),
    day integer not null,
    bucket integer not null,             -- eight to every doubling of a millisecond
    searches integer not null,
    primary key (vault_id, day, bucket)
) strict, without rowid;

create table doors (
    vault_id integer not null references vaults (id),
    day integer not null,
    door text not null,
    searches integer not null,
    primary key (vault_id, day, door)
) strict, without rowid;

create table logged (
    id integer primary key check (id = 1),
    queries integer not null             -- rows of the log, of all vaults
) strict;

insert into logged (id, queries) values (1, 0);

-- Files of searches that were not folded in yet, and how much of each was: a crash between must not count twice.
create table spools (
    name text not null primary key,
    folded integer not null              -- bytes
) strict, without rowid;
