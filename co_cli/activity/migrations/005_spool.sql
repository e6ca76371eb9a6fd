-- activity.db, version 5: the spool file that was read last. If the process is killed before it removes the file, the
-- next one must not count its searches again.

create table spool (
    id integer primary key check (id = 1),
    name text not null
) strict;
