CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, c text, d date, ts timestamp, tz timestamptz, n numeric(10,2), f float8, r real, s smallint, v varchar(5), bo boolean, iv interval, arr int[]);
CREATE TABLE u (id int, a int, c text, x text, PRIMARY KEY (id, a));
CREATE TABLE w (x int);
CREATE TABLE g (id int PRIMARY KEY, a int DEFAULT 5, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0));
CREATE VIEW tv AS SELECT id, a FROM t;

with recursive r as (select 1 as n union all select n+1 from r where n < 5) select * from r
ok n integer

with recursive r(n) as (values (1) union select n+1 from r where n < 5) select sum(n) from r
ok sum bigint

with recursive r as (select * from r) select * from r
42P19 16 recursive query "r" does not have the form non-recursive-term UNION [ALL] recursive-term

with recursive r as (select n+1 as n from r union all select 1) select * from r
42P19 43 recursive reference to query "r" must not appear within its non-recursive term

with recursive r as (select 1 as n union all select r.n from r, r r2) select * from r
42P19 65 recursive reference to query "r" must not appear more than once

with recursive r as (select 1 as n union all select (select n from r)) select * from r
42P19 68 recursive reference to query "r" must not appear within a subquery

with recursive r as (select 1 as n union all select 2 where exists (select 1 from r)) select * from r
42P19 83 recursive reference to query "r" must not appear within a subquery

with recursive r as (select 1 as n union all select r.n from w left join r on true) select * from r
42P19 74 recursive reference to query "r" must not appear within an outer join

with recursive r as (select 1 as n union all select r.n from r left join w on true) select * from r
ok n integer

with recursive r as (select 1 as n union all select r.n from r full join w on true) select * from r
42P19 62 recursive reference to query "r" must not appear within an outer join

with recursive r as (select 1 as n union all (select n from r intersect select 1)) select * from r
ok n integer

with recursive r as (select 1 as n intersect select n from r) select * from r
42P19 16 recursive query "r" does not have the form non-recursive-term UNION [ALL] recursive-term

with recursive r as (select 1 as n union all (select 1 except select n from r)) select * from r
42P19 77 recursive reference to query "r" must not appear within EXCEPT

with recursive r as (select 1 as n union all (select n from r except select 1)) select * from r
ok n integer

with recursive r as (select 1 as n union all select n+1 from r order by 1) select * from r
0A000 73 ORDER BY in a recursive query is not implemented

with recursive r as (select 1 as n union all select n+1 from r limit 5) select * from r
0A000 70 LIMIT in a recursive query is not implemented

with recursive r as (select 1 as n union all select n+1 from r offset 5) select * from r
0A000 71 OFFSET in a recursive query is not implemented

with recursive r as (select 1 as n union all (select n+1 from r order by 1 limit 1)) select * from r
ok n integer

with recursive r as (select 1 as n union all select max(n) from r) select * from r
42P19 53 aggregate functions are not allowed in a recursive query's recursive term

with recursive r as (select 1 as n union all select n from r group by n) select * from r
ok n integer

with recursive r as (select 1 as n union all select count(*) from (select n from r) q) select * from r
42804 29 recursive query "r" column 1 has type integer in non-recursive term but type bigint overall

with recursive r as (select 1 as n union all select rank() over (order by n)::int from r) select * from r
ok n integer

with recursive r as (select 1 as n union all select n + 1.5 from r) select * from r
42804 29 recursive query "r" column 1 has type integer in non-recursive term but type numeric overall

with recursive r as (select 'a' as n union all select n || 'b' from r) select * from r
ok n text

with recursive r as (select 'a'::varchar(3) as n union all select n || 'b' from r) select * from r
42804 29 recursive query "r" column 1 has type character varying(3) in non-recursive term but type character varying overall

with recursive r as (select 1::numeric(5,2) as n union all select n + 1 from r) select * from r
42804 29 recursive query "r" column 1 has type numeric(5,2) in non-recursive term but type numeric overall

with recursive r as (select null as n union all select n from r) select * from r
ok n text

with recursive r as (select 1 as n union all select n from r), s as (select * from r) select * from s
ok n integer

with recursive a as (select * from b), b as (select 1 as x) select * from a
ok x integer

with recursive a as (select 1 as x union all select x from b), b as (select x from a) select * from a
0A000 16 mutual recursion between WITH items is not implemented

with recursive a as (select 1 as x union all select x from b), b as (select 1 as x union all select x from a) select * from a
0A000 16 mutual recursion between WITH items is not implemented

with a as (select * from b), b as (select 1 as x) select * from a
42P01 26 relation "b" does not exist

with r as (select 1 as n union all select n from r) select * from r
42P01 50 relation "r" does not exist

with recursive r as (select 1 as n union all select n from r) search depth first by n set s select * from r
ok n integer, s record[]
ours: 0A000 16 a SEARCH or CYCLE clause is not supported

with recursive r as (select 1 as n union all select n, n from r) select * from r
42601 53 each UNION query must have the same number of columns

with recursive r(a, b) as (select 1 as n union all select n from r) select * from r
42P10 16 WITH query "r" has 1 columns available but 2 columns specified

with recursive r(x) as (select 1 as n union all select x from r) select x from r
ok x integer

with recursive r(x) as (select 1 as n union all select n from r) select x from r
42703 56 column "n" does not exist

with recursive r as (select 1 as n union all select r.n + t.a from r join t on t.id = r.n) select * from r
ok n integer

with recursive r as (select 1 as n union all select q.n + 1 from (select n from r) q) select * from r
ok n integer

with recursive r as (select 1 as n union all select r.n + l.x from r, lateral (select r.n as x) l) select * from r
ok n integer

with recursive r as (select 1 as n union all select 2 from w where x in (select n from r)) select * from r
42P19 88 recursive reference to query "r" must not appear within a subquery

with recursive r as (with q as (select 1 as n) select n from q union all select n + 1 from r where n < 3) select * from r
ok n integer

with recursive r as (select 1 as n union all (with q as (select n from r) select n+1 from q)) select * from r
ok n integer

with recursive r as (with q as (select * from r) select 1 as n union all select n from q) select * from r
42P19 47 recursive reference to query "r" must not appear within a subquery

with recursive r as (select 1 as n union all (with r as (select 5 as n) select n from r)) select * from r
ok n integer

with recursive r as (select 1 as n union all select n from r union all select n from r) select * from r
42P19 60 recursive reference to query "r" must not appear within its non-recursive term

with recursive r as ((select 1 as n union all select 2) union all select n + 1 from r where n < 3) select * from r
ok n integer

with recursive r as (select 1 as n union all select n + 1 from r where n < 3) select * from r a, r b where a.n = b.n
ok n integer, n integer

with recursive r as (insert into w values (1) returning x) select * from r
ok x integer
ours: 0A000 16 a data-modifying statement in WITH is not supported

with q as (insert into w values (1) returning x) select * from q
ok x integer
ours: 0A000 6 a data-modifying statement in WITH is not supported

with q as (delete from w) select 1
ok ?column? integer
ours: 0A000 6 a data-modifying statement in WITH is not supported

with q as (select 1), q as (select 2) select 1
42712 23 WITH query name "q" specified more than once

with q(a, b) as (select 1) select * from q
42P10 6 WITH query "q" has 1 columns available but 2 columns specified

with q as materialized (select 1 as x) select * from q, q q2
ok x integer, x integer

with q as not materialized (select random() as x) select * from q, q q2
ok x double precision, x double precision

with q as (select nope from t) select 1
42703 19 column "nope" does not exist

select (with recursive r as (select t.a as n union all select n + 1 from r where n < 3) select max(n) from r) from t
ok max integer

select * from t, lateral (with recursive r as (select t.a as n union all select n + t.b::int from r where n < t.id) select * from r) l
ok id integer, a integer, b bigint, c text, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[], n integer

with recursive r as (select 1 as n union all select n+1 from r where n < 5) select x from r
42703 84 column "x" does not exist

with recursive r as (select 1 as n union all select m from r) select * from r
42703 53 column "m" does not exist

with recursive r as (select 1 as n, 2 as n union all select 1, 2 from r) select * from r
ok n integer, n integer

with recursive x as (select 1 as n union all select * from x for update) select * from x
0A000 - FOR UPDATE/SHARE in a recursive query is not implemented

