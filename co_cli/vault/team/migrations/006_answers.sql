-- What saves with a client's key were answered, for a day: one that is repeated gets the same answer and saves nothing.
create table answers (
    vault_id integer not null references vaults,
    key text not null,                   -- a hash of who sent which key
    request text not null,               -- a hash of what was asked
    answer text not null,                -- a JSON object
    seq bigint,                          -- the number of the save; null if there was nothing to save
    moment double precision not null,
    primary key (vault_id, key)
);

create index on answers (vault_id, moment);

grant select, insert, update, delete on answers to co_cli_member;
alter table answers enable row level security;
create policy visible on answers using (vault_id = any (array(select id from vaults)));
