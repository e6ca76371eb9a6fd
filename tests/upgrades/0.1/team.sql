


SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;


CREATE SCHEMA team;


ALTER SCHEMA team OWNER TO postgres;

SET default_tablespace = '';

SET default_table_access_method = heap;


CREATE TABLE team.answers (
    vault_id integer NOT NULL,
    key text NOT NULL,
    request text NOT NULL,
    answer text NOT NULL,
    seq bigint,
    moment double precision NOT NULL
);


ALTER TABLE team.answers OWNER TO postgres;


CREATE TABLE team.audit (
    id bigint NOT NULL,
    vault_id integer NOT NULL,
    moment double precision NOT NULL,
    who text NOT NULL,
    action text NOT NULL,
    path text NOT NULL,
    hash text
);


ALTER TABLE team.audit OWNER TO postgres;


ALTER TABLE team.audit ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME team.audit_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);



CREATE TABLE team.changes (
    seq bigint NOT NULL,
    vault_id integer NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    data bytea,
    before text,
    author text NOT NULL,
    saved_at double precision NOT NULL,
    version bigint NOT NULL,
    commit text,
    pushed boolean DEFAULT false NOT NULL,
    merged boolean DEFAULT false NOT NULL
);


ALTER TABLE team.changes OWNER TO postgres;


ALTER TABLE team.changes ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME team.changes_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);



CREATE TABLE team.migrations (
    name text NOT NULL,
    ran_at double precision NOT NULL
);


ALTER TABLE team.migrations OWNER TO postgres;


CREATE TABLE team.taken (
    vault_id integer NOT NULL,
    path text NOT NULL COLLATE pg_catalog."C",
    blob text
);


ALTER TABLE team.taken OWNER TO postgres;


CREATE TABLE team.tokens (
    hash text NOT NULL,
    vault_id integer NOT NULL,
    name text NOT NULL,
    role text NOT NULL,
    created text NOT NULL,
    expires text DEFAULT ''::text NOT NULL,
    per_second integer DEFAULT 0 NOT NULL,
    last_used text DEFAULT ''::text NOT NULL,
    replaced boolean DEFAULT false NOT NULL,
    CONSTRAINT tokens_role_check CHECK ((role = ANY (ARRAY['metrics'::text, 'read'::text, 'write'::text, 'admin'::text])))
);


ALTER TABLE team.tokens OWNER TO postgres;


CREATE TABLE team.vaults (
    id integer NOT NULL,
    name text NOT NULL,
    first_commit text,
    commit text,
    trimmed bigint DEFAULT 0 NOT NULL,
    epoch bigint DEFAULT 0 NOT NULL,
    keeper text,
    behind integer DEFAULT 0 NOT NULL,
    checked_at double precision,
    problem text,
    skipped text DEFAULT '{}'::text NOT NULL,
    files_behind integer DEFAULT 0 NOT NULL
);


ALTER TABLE team.vaults OWNER TO postgres;


ALTER TABLE team.vaults ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME team.vaults_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);



INSERT INTO team.answers VALUES (1, '72ee2d722d4d26e3c0fd0de089776d85', 'e93422e7b375de450eca55c9308e5229', '{"ref": "memory:limes-smell-sweet", "path": "memories/limes-smell-sweet.md", "outcome": "created", "detail": "", "related": [], "masked": 0, "seq": null, "receipt": null}', 6, 1794968006.5054345);



INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (1, 1, 1794968003.597975, 'ada', 'create', 'memories/elm.md', '01c65e636ae4126f28b4786e6007362e');
INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (2, 1, 1794968004.1521957, 'ada', 'create', 'memories/ash.md', '87b68eff1c56b2be5e2ccfaa7c121f8c');
INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (3, 1, 1794968004.7256858, 'ada', 'change', 'memories/elm.md', 'e521dfda45bb012ee587aefae2c4621c');
INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (4, 1, 1794968005.3295016, 'ada', 'remove', 'memories/ash.md', NULL);
INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (5, 1, 1794968005.3312497, 'ada', 'create', '.trash/20261118T021325Z-1/memories/ash.md', '87b68eff1c56b2be5e2ccfaa7c121f8c');
INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (6, 1, 1794968005, 'cli:ada', 'created the token mara (write)', '', NULL);
INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (7, 1, 1794968006, 'cli:ada', 'created the token prometheus (metrics)', '', NULL);
INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (8, 1, 1794968006.5028737, 'Seed 1b9c153c maintainers', 'create', 'memories/limes-smell-sweet.md', 'bbe58b252e7db1a6784baf1ee5eebeae');
INSERT INTO team.audit OVERRIDING SYSTEM VALUE VALUES (9, 1, 1794968006.848677, 'Nils', 'create', 'memories/birch.md', 'b0e5155fe2b29280abce578abd378967');



INSERT INTO team.changes OVERRIDING SYSTEM VALUE VALUES (1, 1, 'memories/elm.md', '\x2d2d2d0a7469746c653a20456c6d0a6b696e643a206d656d6f72790a637265617465643a20323032362d31312d31385430323a31333a32335a0a70726f76656e616e63653a20757365720a2d2d2d0a456c6d73206c696b652077617465722e0a', NULL, 'ada', 1794968003.597975, 3501527321, NULL, false, false);
INSERT INTO team.changes OVERRIDING SYSTEM VALUE VALUES (2, 1, 'memories/ash.md', '\x2d2d2d0a7469746c653a204173680a6b696e643a206d656d6f72790a637265617465643a20323032362d31312d31385430323a31333a32345a0a70726f76656e616e63653a20757365720a2d2d2d0a41736865732066616c6c20696c6c2e0a', NULL, 'ada', 1794968004.1521957, 3501527321, NULL, false, false);
INSERT INTO team.changes OVERRIDING SYSTEM VALUE VALUES (3, 1, 'memories/elm.md', '\x2d2d2d0a7469746c653a20456c6d0a6b696e643a206d656d6f72790a637265617465643a20323032362d31312d31385430323a31333a32335a0a70726f76656e616e63653a20757365720a746167733a205b747265655d0a2d2d2d0a456c6d73206c696b652077617465722e0a', '01c65e636ae4126f28b4786e6007362e', 'ada', 1794968004.7256858, 3501527321, NULL, false, false);
INSERT INTO team.changes OVERRIDING SYSTEM VALUE VALUES (4, 1, 'memories/ash.md', NULL, '87b68eff1c56b2be5e2ccfaa7c121f8c', 'ada', 1794968005.3295016, 3501527321, NULL, false, false);
INSERT INTO team.changes OVERRIDING SYSTEM VALUE VALUES (5, 1, '.trash/20261118T021325Z-1/memories/ash.md', '\x2d2d2d0a7469746c653a204173680a6b696e643a206d656d6f72790a637265617465643a20323032362d31312d31385430323a31333a32345a0a70726f76656e616e63653a20757365720a2d2d2d0a41736865732066616c6c20696c6c2e0a', NULL, 'ada', 1794968005.3312497, 3501527321, NULL, false, false);
INSERT INTO team.changes OVERRIDING SYSTEM VALUE VALUES (6, 1, 'memories/limes-smell-sweet.md', '\x2d2d2d0a7469746c653a204c696d657320736d656c6c2073776565740a6b696e643a206d656d6f72790a637265617465643a20323032362d31312d31385430323a31333a32365a0a746167733a205b747265655d0a70726f76656e616e63653a20757365720a2d2d2d0a4c696d657320736d656c6c2073776565742e0a', NULL, 'Seed 1b9c153c maintainers', 1794968006.5028737, 3501527321, NULL, false, false);
INSERT INTO team.changes OVERRIDING SYSTEM VALUE VALUES (7, 1, 'memories/birch.md', '\x42697263686573206172652077686974652e0a', NULL, 'Nils', 1794968006.848677, 3501527321, '{second}', true, false);



INSERT INTO team.migrations VALUES ('001_team.sql', 1794968003.416543);
INSERT INTO team.migrations VALUES ('002_row_security.sql', 1794968003.4187036);
INSERT INTO team.migrations VALUES ('003_skipped.sql', 1794968003.4195275);
INSERT INTO team.migrations VALUES ('004_tokens.sql', 1794968003.422488);
INSERT INTO team.migrations VALUES ('005_taken.sql', 1794968003.4257774);
INSERT INTO team.migrations VALUES ('006_answers.sql', 1794968003.4296482);



INSERT INTO team.taken VALUES (1, 'memories/birch.md', '3e3c02bf6f763c6240b7cffadf44c4570e622118');



INSERT INTO team.tokens VALUES ('f05afe7e4591d65246ee385eb8acdc3616df4db11314b41dc7064ffda94778d4', 1, 'mara', 'write', '2026-11-18T02:13:25Z', '', 7, '', false);
INSERT INTO team.tokens VALUES ('2e2a941c94d473aad02f5e2d86147d09b28ce29d61fceba5b9009091f1c062b6', 1, 'prometheus', 'metrics', '2026-11-18T02:13:26Z', '', 0, '', false);



INSERT INTO team.vaults OVERRIDING SYSTEM VALUE VALUES (1, 'notes', '{first}', '{first}', 0, 1, 'server:1', 1, 1794968006.8816035, NULL, '{}', 1);



SELECT pg_catalog.setval('team.audit_id_seq', 9, true);



SELECT pg_catalog.setval('team.changes_seq_seq', 7, true);



SELECT pg_catalog.setval('team.vaults_id_seq', 7, true);



ALTER TABLE ONLY team.answers
    ADD CONSTRAINT answers_pkey PRIMARY KEY (vault_id, key);



ALTER TABLE ONLY team.audit
    ADD CONSTRAINT audit_pkey PRIMARY KEY (id);



ALTER TABLE ONLY team.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (seq);



ALTER TABLE ONLY team.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (name);



ALTER TABLE ONLY team.taken
    ADD CONSTRAINT taken_pkey PRIMARY KEY (vault_id, path);



ALTER TABLE ONLY team.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (hash);



ALTER TABLE ONLY team.vaults
    ADD CONSTRAINT vaults_name_key UNIQUE (name);



ALTER TABLE ONLY team.vaults
    ADD CONSTRAINT vaults_pkey PRIMARY KEY (id);



CREATE INDEX answers_vault_id_moment_idx ON team.answers USING btree (vault_id, moment);



CREATE INDEX audit_vault_id_id_idx ON team.audit USING btree (vault_id, id);



CREATE INDEX audit_vault_id_path_id_idx ON team.audit USING btree (vault_id, path, id);



CREATE INDEX changes_vault_id_path_seq_idx ON team.changes USING btree (vault_id, path, seq);



CREATE INDEX changes_vault_id_seq_idx ON team.changes USING btree (vault_id, seq);



CREATE INDEX changes_vault_id_seq_idx1 ON team.changes USING btree (vault_id, seq) WHERE (NOT pushed);



CREATE UNIQUE INDEX tokens_vault_id_name_idx ON team.tokens USING btree (vault_id, name) WHERE (NOT replaced);



ALTER TABLE ONLY team.answers
    ADD CONSTRAINT answers_vault_id_fkey FOREIGN KEY (vault_id) REFERENCES team.vaults(id);



ALTER TABLE ONLY team.audit
    ADD CONSTRAINT audit_vault_id_fkey FOREIGN KEY (vault_id) REFERENCES team.vaults(id);



ALTER TABLE ONLY team.changes
    ADD CONSTRAINT changes_vault_id_fkey FOREIGN KEY (vault_id) REFERENCES team.vaults(id);



ALTER TABLE ONLY team.taken
    ADD CONSTRAINT taken_vault_id_fkey FOREIGN KEY (vault_id) REFERENCES team.vaults(id);



ALTER TABLE ONLY team.tokens
    ADD CONSTRAINT tokens_vault_id_fkey FOREIGN KEY (vault_id) REFERENCES team.vaults(id);



ALTER TABLE team.answers ENABLE ROW LEVEL SECURITY;


ALTER TABLE team.audit ENABLE ROW LEVEL SECURITY;


ALTER TABLE team.changes ENABLE ROW LEVEL SECURITY;


ALTER TABLE team.taken ENABLE ROW LEVEL SECURITY;


ALTER TABLE team.tokens ENABLE ROW LEVEL SECURITY;


ALTER TABLE team.vaults ENABLE ROW LEVEL SECURITY;


CREATE POLICY visible ON team.answers USING ((vault_id = ANY (ARRAY( SELECT vaults.id
   FROM team.vaults))));



CREATE POLICY visible ON team.audit USING ((vault_id = ANY (ARRAY( SELECT vaults.id
   FROM team.vaults))));



CREATE POLICY visible ON team.changes USING ((vault_id = ANY (ARRAY( SELECT vaults.id
   FROM team.vaults))));



CREATE POLICY visible ON team.taken USING ((vault_id = ANY (ARRAY( SELECT vaults.id
   FROM team.vaults))));



CREATE POLICY visible ON team.tokens USING ((vault_id = ANY (ARRAY( SELECT vaults.id
   FROM team.vaults))));



CREATE POLICY visible ON team.vaults USING ((name = ANY (string_to_array(current_setting('co_cli.roots'::text, true), chr(1)))));



GRANT USAGE ON SCHEMA team TO co_cli_member;



GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE team.answers TO co_cli_member;



GRANT SELECT,INSERT ON TABLE team.audit TO co_cli_member;



GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE team.changes TO co_cli_member;



GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE team.taken TO co_cli_member;



GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE team.tokens TO co_cli_member;



GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE team.vaults TO co_cli_member;




