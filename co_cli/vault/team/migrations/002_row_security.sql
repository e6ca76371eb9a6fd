-- A connection sees the vaults that it works with, and no row of any other.
grant usage on schema team to co_cli_member;
grant select, insert, update, delete on vaults, changes, tokens to co_cli_member;
grant select, insert on audit to co_cli_member;

alter table vaults enable row level security;
alter table changes enable row level security;
alter table tokens enable row level security;
alter table audit enable row level security;

create policy visible on vaults
using (name = any (string_to_array(current_setting('co_cli.roots', true), chr(1))));
create policy visible on changes using (vault_id = any (array(select id from vaults)));
create policy visible on tokens using (vault_id = any (array(select id from vaults)));
create policy visible on audit using (vault_id = any (array(select id from vaults)));
