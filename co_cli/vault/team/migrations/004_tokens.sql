-- Tokens expire, are rotated, and have limits of their own. A replaced one works until it expires.
alter table tokens drop constraint tokens_role_check;
alter table tokens add check (role in ('metrics', 'read', 'write', 'admin'));
alter table tokens drop constraint tokens_vault_id_name_key;
alter table tokens add column expires text not null default '';
alter table tokens add column per_second integer not null default 0;
alter table tokens add column last_used text not null default '';
alter table tokens add column replaced boolean not null default false;
create unique index on tokens (vault_id, name) where not replaced;
