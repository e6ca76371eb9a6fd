-- activity.db, version 4: the log is one table, from which everything is counted, and judgements are verdicts alone.

create table searches (
    id integer primary key,
    vault_id integer not null references vaults (id),
    at real not null,
    front_end text not null,             -- cli, agent, mcp, chat, python
    text text,                           -- as it was typed; null: the log leaves texts out
    folded text,                         -- case and spacing do not make another question
    backend text not null,
    state text not null,                 -- found, absent, inconclusive
    hits integer not null,
    took_ms real not null,
    degraded text,                       -- what was missing, in words
    results text                         -- JSON: refs and scores of the first; null: the log leaves texts out
) strict;

insert into searches (vault_id, at, front_end, text, folded, backend, state, hits, took_ms, degraded, results)
select queries.vault_id, at, door, text, folded, backend, state, hits, took_ms, degraded, results
from queries left join questions on questions.id = question_id order by queries.id;

create index searches_by_time on searches (vault_id, at);

drop table queries;
drop table questions;
drop table days;
drop table latencies;
drop table doors;
drop table logged;
drop table spools;

-- A question is ranked again when something is learned from it: candidates that an older formula ranked teach nothing.
alter table judgements drop column space;
alter table judgements drop column meaning;
alter table judgements drop column words;
alter table judgements drop column candidates;

drop table tunings;                      -- what was learned is in learned.json
