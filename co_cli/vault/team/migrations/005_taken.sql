-- Files of a newer commit that are in the vault already, while others of it are not: the vault's commit moves when all
-- are. Empty between two takeovers.
create table taken (
    vault_id integer not null references vaults,
    path text collate "C" not null,
    blob text,                           -- git's name of the text; null: the file was removed
    primary key (vault_id, path)
);

alter table vaults add column files_behind integer not null default 0;   -- which are not in the vault yet

grant select, insert, update, delete on taken to co_cli_member;
alter table taken enable row level security;
create policy visible on taken using (vault_id = any (array(select id from vaults)));
