CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, c text, d date, ts timestamp, tz timestamptz, n numeric(10,2), f float8, r real, s smallint, v varchar(5), bo boolean, iv interval, arr int[]);
CREATE TABLE u (id int, a int, c text, x text, PRIMARY KEY (id, a));
CREATE TABLE w (x int);
CREATE TABLE g (id int PRIMARY KEY, a int DEFAULT 5, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0));
CREATE VIEW tv AS SELECT id, a FROM t;

select (select 1, 2)
42601 8 subquery must return only one column

select (select a from t limit 1) + 1 from u
ok ?column? integer

select a from t where a = (select max(a) from u)
ok a integer

select a from t where (select true)
ok a integer

select a from t where (select 1)
42804 23 argument of WHERE must be type boolean, not type integer

select a in (select a from u) from t
ok ?column? boolean

select a not in (select a from u) from t
ok ?column? boolean

select a in (select x from u) from t
42883 10 operator does not exist: integer = text

select a in (select id, a from u) from t
42601 10 subquery has too many columns

select (a, b) in (select id, a from u) from t
ok ?column? boolean

select (a, b) not in (select id, a from u) from t
ok ?column? boolean

select (a, b) in (select id from u) from t
42601 15 subquery has too few columns

select (a, b) in (select id, a, x from u) from t
42601 15 subquery has too many columns

select (a, b) = any (select id, a from u) from t
ok ?column? boolean

select (a, b) <> any (select id, a from u) from t
ok ?column? boolean

select (a, b) <> all (select id, a from u) from t
ok ?column? boolean

select (a, b) = all (select id, a from u) from t
ok ?column? boolean

select (a, b) < any (select id, a from u) from t
ok ?column? boolean

select (a, b) >= all (select id, a from u) from t
ok ?column? boolean

select a < any (select a from u), a <= all (select a from u), a <> any (select id from u) from t
ok ?column? boolean, ?column? boolean, ?column? boolean

select c like any (select x from u) from t
ok ?column? boolean

select c like any (array['a','b']), a = any ('{1,2}'), a <> all (array[1,2]) from t
ok ?column? boolean, ?column? boolean, ?column? boolean

select a + any (select a from u) from t
42804 10 row comparison operator must yield type boolean, not type integer

select (a, b) + any (select a, a from u) from t
42804 15 row comparison operator must yield type boolean, not type integer

select (a, b) = (select id, a from u limit 1) from t
ok ?column? boolean

select (a, b) < (select id, a from u limit 1) from t
ok ?column? boolean

select (a, b) = (select id from u limit 1) from t
42601 15 subquery has too few columns

select (a, b) = (select id, a, x from u limit 1) from t
42601 15 subquery has too many columns

select (a, b) is distinct from (select id, a from u limit 1) from t
42601 32 subquery must return only one column
ours: 0A000 15 IS DISTINCT FROM of a row and what is not written as a row is not supported

select exists (select 1 from u where u.a = t.a) from t
ok exists boolean

select exists (select from u) from t
ok exists boolean

select not exists (select * from u where u.a = t.a and exists (select 1 from w where w.x = t.id and w.x = u.id)) from t
ok ?column? boolean

select array(select a from u order by a) from t
ok array integer[]

select array(select a, x from u) from t
42601 8 subquery must return only one column

select array(select arr from t)
ok array integer[]

select a, l.x from t, lateral (select x from u where u.a = t.a) l
ok a integer, x text

select a, l.x from t left join lateral (select x from u where u.a = t.a) l on true
ok a integer, x text

select a, l.x from t cross join lateral (select x from u where u.a = t.a order by id limit 1) l
ok a integer, x text

select a, l.x from t right join lateral (select x from u where u.a = t.a) l on true
42P10 70 invalid reference to FROM-clause entry for table "t"

select a, l.x from t full join lateral (select x from u where u.a = t.a) l on true
42P10 69 invalid reference to FROM-clause entry for table "t"

select a, l.x from t, (select x from u where u.a = t.a) l
42P01 52 invalid reference to FROM-clause entry for table "t"

select * from t, lateral (select t.a + nope.x) l
42P01 40 missing FROM-clause entry for table "nope"

select * from (t cross join lateral (select t.a as la) l) cross join lateral (select l.la + t.b as lb) m
ok id integer, a integer, b bigint, c text, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[], la integer, lb bigint

select * from lateral (select 1 as x) l, lateral (select l.x + 1 as y) m
ok x integer, y integer

select (select (select t.a + u.a) from u limit 1) from t
ok ?column? integer

select a, (select count(*) from u where u.a = t.a) as n from t order by n
ok a integer, n bigint

select a from t order by (select max(x) from u where u.a = t.a)
ok a integer

select a, count(*) from t group by a having count(*) > (select max(u.a) from u where u.a = t.a)
ok a integer, count bigint

select a, count(*) from t group by a having count(*) > (select max(u.a) from u where u.a = t.b)
42803 92 subquery uses ungrouped column "t.b" from outer query

select c, (select max(u.a) from u where u.a = count(t.b)) from t group by c
ok c text, max integer

select * from t join u on t.a = (select max(x) from w where w.x = u.a)
ok id integer, a integer, b bigint, c text, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[], id integer, a integer, c text, x text

select * from t left join u on exists (select 1 from w where w.x = u.a and w.x = t.a)
ok id integer, a integer, b bigint, c text, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[], id integer, a integer, c text, x text

values ((select max(a) from t)), (2)
ok column1 integer

insert into w values ((select max(a) from t))
ok

create table k (x int default (select 1))
0A000 31 cannot use subquery in DEFAULT expression

create table k (x int check (x > (select 1)))
0A000 34 cannot use subquery in check constraint

create table k (x int, y int generated always as ((select 1)) stored)
0A000 51 cannot use subquery in column generation expression

select a from t limit (select 1)
ok a integer

select a from t limit (select max(u.a) from u where u.id = t.a)
42P10 60 argument of LIMIT must not contain variables

select a from t offset (select count(*) from u)
ok a integer

select (select sum(t.a)) from t
ok sum bigint

select (select sum(t.a) from u) from t
ok sum bigint

select (select sum(t.a + u.a) from u) from t
ok sum bigint

update u set x = (select c from t where t.id = u.id)
ok

update u set (x, c) = (select c, v from t where t.id = u.id)
ok

update u set (x, c) = (select c from t where t.id = u.id)
42601 23 number of columns does not match number of values

update u set (x, c) = row('a', 'b')
ok

update u set (x, c) = ('a', default)
ok

update u set (x, c) = ('a')
0A000 24 source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression

update u set (x, c) = 'a'
0A000 23 source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression

delete from u where id in (select id from t where t.a = u.a)
ok

select case when exists (select 1 from u) then (select 1) else (select 2) end
ok ?column? integer

select * from (select 1)
42601 15 subquery in FROM must have an alias
ours: ok ?column? integer

select * from (select 1 as a, 2 as a) q where a = 1
42702 47 column reference "a" is ambiguous

select * from (select a from t) q(x, y)
42P10 - table "q" has 1 columns available but 2 columns specified

select * from (values (1, 'a'), (2, 'b')) v(n, s) where s = (select 'a')
ok n integer, s text

select * from (values (1), (2, 3)) v
42601 29 VALUES lists must all be the same length

select * from (values (1), ('a')) v
22P02 29 invalid input syntax for type integer: "a"

select * from (values (1), (2.5)) v
ok column1 numeric

select column1 from (values (1, 2)) v order by column2
ok column1 integer

select t.a = u.a from t
42P01 14 missing FROM-clause entry for table "u"

select a from t where a > all (select b from t t2 where t2.c = t.c)
ok a integer

select (1, 2) in ((1, 2), (3, 4)), (a, c) in ((1, 'x'), (2, 'y')) from t
ok ?column? boolean, ?column? boolean

select (a, b) in ((1, 2), (3, 4, 5)) from t
42601 15 unequal number of entries in row expressions

select (a, b) in ((1), (3)) from t
42883 15 operator does not exist: record = integer

select (a, b) not in ((1, 2)) from t
ok ?column? boolean

select row(a, b) = row(1, 2), (a, b) <> (1, 2), (a, b) < (1, 2), (a, b) >= row(1, 2) from t
ok ?column? boolean, ?column? boolean, ?column? boolean, ?column? boolean

select (a, b) = (1, 2, 3) from t
42601 15 unequal number of entries in row expressions

select row() = row()
0A000 14 cannot compare rows of zero length

select row(a) = row(1), row(a, b) is null, row(a, b) is not null, (a, b) is distinct from (1, 2), (a, b) is not distinct from (null, null) from t
ok ?column? boolean, ?column? boolean, ?column? boolean, ?column? boolean, ?column? boolean

select (a, b) like (1, 2) from t
42883 15 operator does not exist: integer ~~ integer

select (a, b) + (1, 2) from t
42804 15 row comparison operator must yield type boolean, not type integer

select (a, b) = 1 from t
42883 15 operator does not exist: record = integer

select (a, 'x') = (1, c), (a, null) = (1, 2) from t
ok ?column? boolean, ?column? boolean

select (a, b) between (1, 2) and (3, 4) from t
ok ?column? boolean

select (a, d) = ('1', '2020-01-01') from t
ok ?column? boolean

select (a, d) = ('1', 'x') from t
22007 23 invalid input syntax for type date: "x"

select (a, c) = (c, a) from t
42883 15 operator does not exist: integer = text

select count(t), count(t.*), count(distinct t.a) from t
ok count bigint, count bigint, count bigint

select t is null, t is not null from t
ok ?column? boolean, ?column? boolean

select t = t, t.* is not null from t
ok ?column? boolean, ?column? boolean

select u = u, u < u, u is distinct from u from u
ok ?column? boolean, ?column? boolean, ?column? boolean

select u in (select u2 from u u2) from u
ok ?column? boolean
ours: 0A000 8 the whole-row reference "u" is not supported

select (t).a, (t).c from t
ok a integer, c text

select (t).nope from t
42703 9 column t.nope does not exist

select (t).* from t limit 1
ok id integer, a integer, b bigint, c text, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[]

select (t.*).a from t
ok a integer

select (u).x from t
42703 9 column "u" does not exist

select a.b from t
42P01 8 missing FROM-clause entry for table "a"

select (a).b from t
42809 9 column notation .b applied to type integer, which is not a composite type

select (row(1, 2)).f1
ok f1 integer

select (row(1, 'a')).*
XX000 - failed to find conversion function from unknown to text
ours: ok f1 integer, f2 text

select x.* from (select 1 as p, 2 as q) x
ok p integer, q integer

select (x).p from (select 1 as p, 2 as q) x
ok p integer

select x = x from (select 1 as p, 2 as q) x
ok ?column? boolean

select (select u from u limit 1) is null from t
ok ?column? boolean
ours: 0A000 16 the whole-row reference "u" is not supported

select w in (select w from w) from w
ok ?column? boolean
ours: 0A000 8 the whole-row reference "w" is not supported

select t from t
ok t t
ours: 0A000 8 the whole-row reference "t" is not supported

select row(1, 2)
ok row record
ours: 0A000 8 a row value here is not supported

select row(a, b) from t
ok row record
ours: 0A000 8 a row value here is not supported

select (a, b) from t
ok row record
ours: 0A000 8 a row value here is not supported

