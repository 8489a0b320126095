CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, c text, d date, ts timestamp, tz timestamptz, n numeric(10,2), f float8, r real, s smallint, v varchar(5), bo boolean, iv interval, arr int[]);
CREATE TABLE u (id int, a int, c text, x text, PRIMARY KEY (id, a));
CREATE TABLE w (x int);
CREATE TABLE g (id int PRIMARY KEY, a int DEFAULT 5, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0));
CREATE VIEW tv AS SELECT id, a FROM t;

select
ok

selct 1
42601 1 syntax error at or near "selct"

select 1 from
42601 14 syntax error at end of input

select a b c from t
42601 12 syntax error at or near "c"

select from where
42601 13 syntax error at or near "where"

select * from t where
42601 22 syntax error at end of input

select (1
42601 10 syntax error at end of input

select 1)
42601 9 syntax error at or near ")"

select 'abc
42601 8 unterminated quoted string at or near "'abc"

select "abc
42601 8 unterminated quoted identifier at or near ""abc"

select $$abc
42601 8 unterminated dollar-quoted string at or near "$$abc"

select /* abc
42601 8 unterminated /* comment at or near "/* abc"

select 1 +
42601 11 syntax error at end of input

select a from t group
42601 22 syntax error at end of input

select a from t order a
42601 23 syntax error at or near "a"

select a from t limit 1 limit 2
42601 25 syntax error at or near "limit"

select a from t where a = = 1
42601 27 syntax error at or near "="

select a from t where a in ()
42601 29 syntax error at or near ")"

select case end
42601 13 syntax error at or near "end"

select cast(a int) from t
42601 15 syntax error at or near "int"

select a from t join u
42601 23 syntax error at end of input

select a from t left u on true
42601 22 syntax error at or near "u"

select a from t natural left join u using (id)
42601 37 syntax error at or near "using"

select distinct on a from t
42601 20 syntax error at or near "a"

insert t values (1)
42601 8 syntax error at or near "t"

insert into t value (1)
42601 15 syntax error at or near "value"

insert into t (a b) values (1)
42601 18 syntax error at or near "b"

update t a = 1
42601 12 syntax error at or near "="

update t set a
42601 15 syntax error at end of input

delete t
42601 8 syntax error at or near "t"

delete from t where
42601 20 syntax error at end of input

create table
42601 13 syntax error at end of input

create table k (a)
42601 19 syntax error at end of input

create table k (a int,)
42601 23 syntax error at or near ")"

create table k a int
42601 16 syntax error at or near "a"

create view v
42601 14 syntax error at end of input

create view v as insert into t values (1)
42601 18 syntax error at or near "insert"

create index t (a)
42601 16 syntax error at or near "("

drop
42601 5 syntax error at end of input

select * from t; selct 2
42601 18 syntax error at or near "selct"

select 1 a, from t
42601 13 syntax error at or near "from"

select t.* a from t
ok id integer, a integer, b bigint, c text, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[]

select * from t as
42601 19 syntax error at end of input

select a from t where a between 1
42601 34 syntax error at end of input

select a from t where not
42601 26 syntax error at end of input

select interval 1 day
42601 17 syntax error at or near "1"

select e'\u00zz'
22025 10 invalid Unicode escape

select u&'\00zz'
42601 11 invalid Unicode escape

select 'a' 'b'
42601 12 syntax error at or near "'b'"

select 1_000
42601 8 trailing junk after numeric literal at or near "1_000"
ours: ok ?column? integer

select 0x1g
42601 8 trailing junk after numeric literal at or near "0x1g"

select 1a
42601 8 trailing junk after numeric literal at or near "1a"

select 99999999999999999999999999999, 1e400
ok ?column? numeric, ?column? numeric

select 1e5::int, 2147483648::int
ok int4 integer, int4 integer

select 2147483648::int4
ok int4 integer

select '99999999999'::int
22003 8 value "99999999999" is out of range for type integer

select 'abc'::numeric
22P02 8 invalid input syntax for type numeric: "abc"

select ''::int
22P02 8 invalid input syntax for type integer: ""

select 'maybe'::bool
22P02 8 invalid input syntax for type boolean: "maybe"

select '2020-13-01'::date
22008 8 date/time field value out of range: "2020-13-01"

select '25:00'::time
22008 8 date/time field value out of range: "25:00"

select 'x'::timestamp
22007 8 invalid input syntax for type timestamp: "x"

select '1 foo'::interval
22007 8 invalid input syntax for type interval: "1 foo"

select '{1,2'::int[]
22P02 8 malformed array literal: "{1,2"

select '{a}'::int[]
22P02 8 invalid input syntax for type integer: "a"

select 'a' + 1
22P02 8 invalid input syntax for type integer: "a"

select 'a' + 'b'
42725 12 operator is not unique: unknown + unknown

select 1 + true
42883 10 operator does not exist: integer + boolean

select true + true
42883 13 operator does not exist: boolean + boolean

select a + c from t
42883 10 operator does not exist: integer + text

select c + c from t
42883 10 operator does not exist: text + text

select a || a from t
42883 10 operator does not exist: integer || integer

select -c from t
42883 8 operator does not exist: - text

select not a from t
42804 12 argument of NOT must be type boolean, not type integer

select a and true from t
42804 8 argument of AND must be type boolean, not type integer

select a or bo from t
42804 8 argument of OR must be type boolean, not type integer

select a like 'x' from t
42883 10 operator does not exist: integer ~~ unknown

select c ~ 1 from t
42883 10 operator does not exist: text ~ integer

select a = c from t
42883 10 operator does not exist: integer = text

select a = 'x' from t
22P02 12 invalid input syntax for type integer: "x"

select d = 5 from t
42883 10 operator does not exist: date = integer

select a < bo from t
42883 10 operator does not exist: integer < boolean

select a in (1, 'x') from t
22P02 17 invalid input syntax for type integer: "x"

select a in (1, c) from t
42883 10 operator does not exist: integer = text

select a is true from t
42804 8 argument of IS TRUE must be type boolean, not type integer

select c is unknown from t
42804 8 argument of IS UNKNOWN must be type boolean, not type text

select a ! b from t
42883 10 operator does not exist: integer ! bigint

select a operator(pg_catalog.+) b from t
ok ?column? bigint

select a operator(public.+) b from t
42883 10 operator does not exist: integer public.+ bigint

select @@ a from t
42883 8 operator does not exist: @@ integer

select a @> b from t
42883 10 operator does not exist: integer @> bigint

select nofn()
42883 8 function nofn() does not exist

select nofn(1, 'a', a) from t
42883 8 function nofn(integer, unknown, integer) does not exist

select lower(1)
42883 8 function lower(integer) does not exist

select lower('a', 'b')
42883 8 function lower(unknown, unknown) does not exist

select lower()
42883 8 function lower() does not exist

select pg_catalog.nofn(1)
42883 8 function pg_catalog.nofn(integer) does not exist

select nosch.lower('a')
3F000 8 schema "nosch" does not exist

select public.lower('a')
42883 8 function public.lower(unknown) does not exist

select length(a) from t
42883 8 function length(integer) does not exist

select round(1.5, 'x')
22P02 19 invalid input syntax for type integer: "x"

select round(c) from t
42883 8 function round(text) does not exist

select substr(a, 1) from t
42883 8 function substr(integer, integer) does not exist

select now(1)
42883 8 function now(integer) does not exist

select max(a, b) from t
42883 8 function max(integer, bigint) does not exist

select nope from t
42703 8 column "nope" does not exist

select t.nope from t
42703 8 column t.nope does not exist

select x.a from t
42P01 8 missing FROM-clause entry for table "x"

select public.t.a from t
ok a integer

select nosch.t.a from t
42P01 8 invalid reference to FROM-clause entry for table "t"

select a.b.c.d.e from t
42601 8 improper qualified name (too many dotted names): a.b.c.d.e

select t.a.b from t
42P01 8 missing FROM-clause entry for table "a"

select * from nope
42P01 15 relation "nope" does not exist

select * from nosch.t
42P01 15 relation "nosch.t" does not exist

select * from t x where t.a = 1
42P01 25 invalid reference to FROM-clause entry for table "t"

select x.* from t
42P01 8 missing FROM-clause entry for table "x"

select *
42601 8 SELECT * with no tables specified is not valid

select a from t, u
42702 8 column reference "a" is ambiguous

select a from t join u using (id)
42702 8 column reference "a" is ambiguous

select id from t, u
42702 8 column reference "id" is ambiguous

select * from t join u on id = 1
42702 27 column reference "id" is ambiguous

select ctid.x from t
42P01 8 missing FROM-clause entry for table "ctid"

select a as "A" from t order by A
ok A integer

select a from t where a = $1 and c = $1
42883 36 operator does not exist: text = integer

select $1
ok ?column? text

select $0
42P02 8 there is no parameter $0

select a from t where a = $1
ok a integer

select $1 + $2
42725 11 operator is not unique: unknown + unknown

select coalesce($1, 1)
ok coalesce integer

select a, count(*) from t
42803 8 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select a, b from t group by a
42803 11 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

select a + b from t group by a
42803 12 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

select * from t group by id
ok id integer, a integer, b bigint, c text, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[]

select * from t group by a
42803 8 column "t.id" must appear in the GROUP BY clause or be used in an aggregate function

select t.* from t group by a
42803 8 column "t.id" must appear in the GROUP BY clause or be used in an aggregate function

select a from t having a > 1
42803 8 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select a from t having count(*) > 1
42803 8 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select count(*) from t having count(*) > 1
ok count bigint

select a from t group by 5
42P10 26 GROUP BY position 5 is not in select list

select a from t group by count(*)
42803 26 aggregate functions are not allowed in GROUP BY

select count(*) as n from t group by n
ok n bigint

select a from t where count(*) > 0
42803 23 aggregate functions are not allowed in WHERE

select count(*) from t where sum(a) > 1
42803 30 aggregate functions are not allowed in WHERE

select sum(sum(a)) from t
42803 12 aggregate function calls cannot be nested

select count(count(*)) from t
42803 14 aggregate function calls cannot be nested

select a from t join u on count(*) = 1
42803 27 aggregate functions are not allowed in JOIN conditions

select t.a from t join u on t.a = u.a and sum(u.a) > 1
42803 43 aggregate functions are not allowed in JOIN conditions

select a from t order by count(*)
42803 8 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select b from t group by a order by b
42803 8 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

select distinct a from t order by count(*)
42P10 35 for SELECT DISTINCT, ORDER BY expressions must appear in select list

select a from t group by a order by b
42803 37 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

select max(a) from t order by a
42803 31 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select exists (select nope from t)
42703 23 column "nope" does not exist

select a from t where a = (select a, b from t)
42601 27 subquery must return only one column

select a from t where a in (select a, b from t)
42601 25 subquery has too many columns

select a from t where a in (select c from t)
42883 25 operator does not exist: integer = text

select a from t where (select a from t)
42804 23 argument of WHERE must be type boolean, not type integer

select array(select nope from t)
42703 21 column "nope" does not exist

select 1 union select 1, 2
42601 23 each UNION query must have the same number of columns

select 1 union select 'a'
22P02 23 invalid input syntax for type integer: "a"

select 1 union all select true
42804 27 UNION types integer and boolean cannot be matched

select a from t union select c from t
42804 30 UNION types integer and text cannot be matched

select a from t union select b from u
42703 30 column "b" does not exist

select 1 intersect select 'x'::text
42804 27 INTERSECT types integer and text cannot be matched

values (1, 2), (1)
42601 17 VALUES lists must all be the same length

values (1), (true)
42804 14 VALUES types integer and boolean cannot be matched

values (nope)
42703 9 column "nope" does not exist

select * from (values (1, 2)) v(a, b, c)
42P10 - table "v" has 2 columns available but 3 columns specified

select * from t as x(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)
42P10 - table "x" has 15 columns available but 16 columns specified

select a from t for update of nope
42P01 31 relation "nope" in FOR UPDATE clause not found in FROM clause
ours: 0A000 - SELECT … FOR UPDATE or FOR SHARE is not supported

select a from t tablesample system (10)
ok a integer
ours: 0A000 29 TABLESAMPLE is not supported

select xmlelement(name a)
ok xmlelement xml
ours: 0A000 8 XML is not supported

select a from t where c collate "nope" = 'a'
42704 25 collation "nope" for encoding "UTF8" does not exist
ours: 42704 25 collation "nope" for encoding "UTF8" does not exist

select 1::int4range
42846 9 cannot cast type integer to int4range
ours: 42704 11 type "int4range" does not exist

select 'a'::char(0)
22023 13 length for type char must be at least 1

select 1::numeric(3, 5000)
22023 11 NUMERIC scale 5000 must be between -1000 and 1000

select 1::timestamp(9)
42846 9 cannot cast type integer to timestamp without time zone

select '2020-01-01'::timestamp(3), now()::timestamp(7)
ok timestamp timestamp(3) without time zone, now timestamp(6) without time zone

select b::bool from t
42846 9 cannot cast type bigint to boolean

select d::int from t
42846 9 cannot cast type date to integer

select bo::float8 from t
42846 10 cannot cast type boolean to double precision

select iv::int from t
42846 10 cannot cast type interval to integer

select arr::text[], arr::int from t
42846 24 cannot cast type integer[] to integer

select a::int[] from t
42846 9 cannot cast type integer to integer[]

select greatest(1, 'x')
22P02 20 invalid input syntax for type integer: "x"

select least(d, 1) from t
42804 17 LEAST types date and integer cannot be matched

select case when 1 then 2 end
42804 18 argument of CASE/WHEN must be type boolean, not type integer

select case 1 when true then 2 end
42883 15 operator does not exist: integer = boolean

select case when true then 1 when false then true end
42804 46 CASE types integer and boolean cannot be matched

select nullif(1, true)
42883 8 operator does not exist: integer = boolean

select extract(year from 'x'::text)
42883 8 function pg_catalog.extract(unknown, text) does not exist

select array[1, true]
42804 17 ARRAY types integer and boolean cannot be matched

select array[1, 2] || 'x'
22P02 23 malformed array literal: "x"

select array[1, 2] || true
42883 20 operator does not exist: integer[] || boolean

select (array[1, 2])['a']
22P02 22 invalid input syntax for type integer: "a"

select any(array[1])
42601 8 syntax error at or near "any"

select 1 = any(1)
42809 10 op ANY/ALL (array) requires array on right side

select 1 = any('x')
22P02 16 malformed array literal: "x"

select 1 = any(array['a'])
42883 10 operator does not exist: integer = text

select 1 = all(array[true])
42883 10 operator does not exist: integer = boolean

select row(1, 2) = row(1)
42601 18 unequal number of entries in row expressions

select (1, 2) = (1, 'x')
22P02 21 invalid input syntax for type integer: "x"

select default
42601 8 DEFAULT is not allowed in this context

select a from t where default
42601 23 DEFAULT is not allowed in this context

set x
42601 6 syntax error at end of input

explain
42601 8 syntax error at end of input

explain foo
42601 9 syntax error at or near "foo"

truncate
42601 9 syntax error at end of input

copy
42601 5 syntax error at end of input

begin foo
42601 7 syntax error at or near "foo"

