-- The relations of the tests' catalog, as PostgreSQL takes them; judge.txt has its answers.
CREATE SCHEMA s;
CREATE TABLE t (id int PRIMARY KEY, name varchar(10), amount numeric(8,2) NOT NULL DEFAULT 1.5, at timestamptz(3), tags text[], doc jsonb, "Odd" bigint,
  twice numeric GENERATED ALWAYS AS (amount * 2) STORED, flag boolean, code char(3), iv interval, d date, f real, CONSTRAINT positive CHECK (amount > 0));
CREATE TABLE s.pair (b text, a int, v double precision, CONSTRAINT pair_key PRIMARY KEY (a, b));
CREATE INDEX t_name ON t (name, amount DESC);
CREATE UNIQUE INDEX t_odd ON t ("Odd") INCLUDE (name);
CREATE VIEW v AS SELECT id, name FROM t WHERE id > 1;
CREATE MATERIALIZED VIEW mv AS SELECT name, count(*) AS n FROM t GROUP BY name;
COMMENT ON TABLE t IS 'a remark';
COMMENT ON COLUMN t.name IS 'of a column';
