-- Files of the commit that no server has, with the reasons, as a JSON object.
alter table vaults add column skipped text not null default '{}';
