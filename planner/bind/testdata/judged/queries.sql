CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, c text, d date, ts timestamp, tz timestamptz, n numeric(10,2), f float8, r real, s smallint, v varchar(5), bo boolean, iv interval, arr int[]);
CREATE TABLE u (id int, a int, c text, x text, PRIMARY KEY (id, a));
CREATE TABLE w (x int);
CREATE TABLE g (id int PRIMARY KEY, a int DEFAULT 5, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0));
CREATE VIEW tv AS SELECT id, a FROM t;

select * from generate_series(1, 3)
ok generate_series integer

select * from generate_series(1, 3) with ordinality
ok generate_series integer, ordinality bigint

select * from generate_series(1, 3) with ordinality as g(a, b)
ok a integer, b bigint

select * from generate_series(1, 3) as g(a, b)
42P10 - table "g" has 1 columns available but 2 columns specified

select * from unnest(array[1,2], array['a']) as u(n, s)
ok n integer, s text

select * from unnest(array[1,2], array['a']) with ordinality
ok unnest integer, unnest text, ordinality bigint

select * from rows from (generate_series(1, 2), generate_series(1, 5)) as r(a, b)
ok a integer, b integer

select * from rows from (generate_series(1, 2), unnest(array['a'], array[1])) with ordinality as r(a, b, c, o)
ok a integer, b text, c integer, o bigint

select * from rows from (abs(1), generate_series(1, 2))
ok abs integer, generate_series integer

select * from abs(-1), upper('x') as u
ok abs integer, u text

select * from abs(-1) with ordinality
ok abs integer, ordinality bigint

select * from generate_series(1, 2) as g(x int)
42601 42 a column definition list is only allowed for functions returning "record"

select * from abs(1) as g(x int)
42601 27 a column definition list is only allowed for functions returning "record"

select unnest(1)
42883 8 function unnest(integer) does not exist

select generate_series(1, 3), unnest(array['a', 'b'])
ok generate_series integer, unnest text

select generate_series(1, generate_series(1, 3))
ok generate_series integer

select a from t where generate_series(1, 2) = 1
0A000 23 set-returning functions are not allowed in WHERE

select a from t group by a having generate_series(1, 2) = 1
0A000 35 set-returning functions are not allowed in HAVING

select a from t limit generate_series(1, 2)
0A000 23 set-returning functions are not allowed in LIMIT

select case when generate_series(1, 2) = 1 then 1 end
42804 18 argument of CASE/WHEN must not return a set

select coalesce(generate_series(1, 2), 0)
0A000 17 set-returning functions are not allowed in COALESCE

select sum(generate_series(1, 2))
0A000 12 aggregate function calls cannot contain set-returning function calls

select a, generate_series(1, 2) from t order by 2 limit 3
ok a integer, generate_series integer

select distinct generate_series(1, 2)
ok generate_series integer

select generate_series(1, count(*)) from t
ok generate_series bigint

select count(*) from t group by generate_series(1, 2)
ok count bigint

values (generate_series(1, 2))
0A000 9 set-returning functions are not allowed in VALUES

insert into w values (generate_series(1, 2))
ok

insert into w select generate_series(1, 2)
ok

update w set x = generate_series(1, 2)
0A000 18 set-returning functions are not allowed in UPDATE

delete from w where x = generate_series(1, 2)
0A000 25 set-returning functions are not allowed in WHERE

select * from t join u on generate_series(1, 2) = 1
0A000 27 set-returning functions are not allowed in JOIN conditions

select t.a from t join u using (id) join w on true
ok a integer

select id, a, t.id, u.id from t join u using (id)
42702 12 column reference "a" is ambiguous

select id from t full join u using (id, a)
ok id integer

select * from t natural join u
ok id integer, a integer, c text, b bigint, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[], x text

select j.id from t join u using (id) as j
ok id integer

select j.a from t join u using (id) as j
42703 8 column j.a does not exist

select * from t join u using (nope)
42703 - column "nope" specified in USING clause does not exist in left table

select * from t join u using (x)
42703 - column "x" specified in USING clause does not exist in left table

select * from t join u using (id, id)
42701 - column name "id" appears more than once in USING clause

select * from (t join u using (id)) as j(k)
ok k integer, a integer, b bigint, c text, d date, ts timestamp without time zone, tz timestamp with time zone, n numeric(10,2), f double precision, r real, s smallint, v character varying(5), bo boolean, iv interval, arr integer[], a integer, c text, x text

select t.a from (t join u using (id)) as j
42P01 8 invalid reference to FROM-clause entry for table "t"

select * from t t1 join t t2 using (id) join u using (a)
42702 - common column name "a" appears more than once in left table

select * from u natural join w
42804 - JOIN/USING types text and integer cannot be matched

select * from t join w on t.a = w.x and t.c
42804 41 argument of AND must be type boolean, not type text

select * from t join w on 1
42804 27 argument of JOIN/ON must be type boolean, not type integer

select * from t join w on t.nope = 1
42703 27 column t.nope does not exist

select * from t a join t a on true
42712 - table name "a" specified more than once

select * from t, t
42712 - table name "t" specified more than once

select a from t, u
42702 8 column reference "a" is ambiguous

select a from t order by a fetch first 3 rows with ties
ok a integer

select a from t fetch first 3 rows with ties
42601 - WITH TIES cannot be specified without ORDER BY clause

select a from t order by a offset 1 + 1 limit 2 * 3
ok a integer

select a from t order by a fetch first row only
ok a integer

select a from t limit 1.5
ok a integer

select a from t limit 'x'
22P02 23 invalid input syntax for type bigint: "x"

select a from t limit a
42P10 23 argument of LIMIT must not contain variables

select a from t limit c
42804 23 argument of LIMIT must be type bigint, not type text

select a from t offset a + 1
42P10 24 argument of OFFSET must not contain variables

select a from t limit all
ok a integer

select a from t limit null offset null
ok a integer

select a from t order by 1 limit '3'
ok a integer

values (1, 'a'), (2, 'b') order by column1 desc limit 1
ok column1 integer, column2 text

values (1), ('x')
22P02 14 invalid input syntax for type integer: "x"

values (1, 2), (3)
42601 17 VALUES lists must all be the same length

values (default)
42601 9 DEFAULT is not allowed in this context

table u
ok id integer, a integer, c text, x text

table nope
42P01 7 relation "nope" does not exist

select a into k from t
ok
ours: 0A000 15 SELECT INTO is not supported

select distinct on (a) a, b from t order by a, b
ok a integer, b bigint

select distinct on (a) a, b from t order by b
42P10 21 SELECT DISTINCT ON expressions must match initial ORDER BY expressions

select distinct on (a, b) a, b from t order by b, a, c
ok a integer, b bigint

select distinct on (1) a, b from t order by a
ok a integer, b bigint

select distinct on (3) a, b from t
42P10 21 DISTINCT ON position 3 is not in select list

select distinct a from t order by b
42P10 35 for SELECT DISTINCT, ORDER BY expressions must appear in select list

select distinct a + 1 from t order by a + 1
ok ?column? integer

select distinct a from t order by a + 1
42P10 35 for SELECT DISTINCT, ORDER BY expressions must appear in select list

select distinct on (lower(c)) c from t order by lower(c)
ok c text

select a from t union select a from u order by a
ok a integer

select a from t union select a from u order by a + 1
0A000 48 invalid UNION/INTERSECT/EXCEPT ORDER BY clause

select a from t union select a from u order by t.a
42P01 48 missing FROM-clause entry for table "t"

select a as x from t union select a as y from u order by y
42703 58 column "y" does not exist

select a from t union select a from u order by 2
42P10 48 ORDER BY position 2 is not in select list

select a, a from t union select a, id from u order by a
42702 55 ORDER BY "a" is ambiguous

select a from t union all select c from t
42804 34 UNION types integer and text cannot be matched

select a from t union select a, b from t
42601 30 each UNION query must have the same number of columns

select a from t except select 'x'
22P02 31 invalid input syntax for type integer: "x"

select a from t intersect select '1'
ok a integer

select 1 union select 2 union all select 'x'
22P02 42 invalid input syntax for type integer: "x"

select '1' union select 2
ok ?column? integer

select null union select null
ok ?column? text

select null union select 1
ok ?column? integer

(select a from t order by a limit 1) union all (select a from u order by a limit 1) order by 1
ok a integer

select a from t order by a union select a from u
42601 28 syntax error at or near "union"

select a from t order by nope
42703 26 column "nope" does not exist

select a as x, b as x from t order by x
42702 39 ORDER BY "x" is ambiguous

select a as x, a as x from t order by x
ok x integer, x integer

select a as b, b as a from t order by a
ok b integer, a bigint

select a from t order by 0
42P10 26 ORDER BY position 0 is not in select list

select a from t order by 1.5
42601 26 non-integer constant in ORDER BY

select a from t order by 'x'
42601 26 non-integer constant in ORDER BY

select a from t order by 2
42P10 26 ORDER BY position 2 is not in select list

select a as x from t order by x + 1
42703 31 column "x" does not exist

select a as x from t where x = 1
42703 28 column "x" does not exist

select a as x from t group by x having x > 1
42703 40 column "x" does not exist

select -a as a from t group by a
ok a integer

select a from t order by a using <
ok a integer

select a from t order by a using +
42809 34 operator + is not a valid ordering operator

select a from t order by a nulls first, b desc nulls last
ok a integer

select c collate "C" from t order by c collate "default"
ok c text

select c collate "en_XX" from t
42704 10 collation "en_XX" for encoding "UTF8" does not exist
ours: 42704 10 collation "en_XX" for encoding "UTF8" does not exist

select a collate "C" from t
42804 10 collations are not supported by type integer

select a between symmetric 5 and 1, a not between symmetric 1 and 2, a not between 1 and 2 from t
ok ?column? boolean, ?column? boolean, ?column? boolean

select a between 'x' and 2 from t
22P02 18 invalid input syntax for type integer: "x"

select c similar to 'a%' escape '#', c not similar to 'b', c like 'a' escape '#', c not ilike 'x' from t
ok ?column? boolean, ?column? boolean, ?column? boolean, ?column? boolean

select c is json from t
42601 13 syntax error at or near "json"
ours: 0A000 8 IS JSON is not supported

select c is document from t
42804 8 argument of IS DOCUMENT must be type xml, not type text
ours: 0A000 10 XML is not supported

select (d, d) overlaps (d, d) from t
ok overlaps boolean

select (ts, ts) overlaps (ts, interval '1 day') from t
ok overlaps boolean

select (1, 2) overlaps (3, 4)
42883 15 function pg_catalog.overlaps(integer, integer, integer, integer) does not exist

select (d, d, d) overlaps (d, d) from t
42601 8 wrong number of parameters on left side of OVERLAPS expression

select ts at time zone 'UTC', tz at time zone 'UTC', tz at time zone interval '1 hour' from t
ok timezone timestamp with time zone, timezone timestamp without time zone, timezone timestamp without time zone

select a at time zone 'UTC' from t
42883 10 function pg_catalog.timezone(unknown, integer) does not exist

select extract(year from d), extract(epoch from ts), extract('day' from iv), date_part('year', tz) from t
ok extract numeric, extract numeric, extract numeric, date_part double precision

select extract(foo from d) from t
ok extract numeric

select extract(year from a) from t
42883 8 function pg_catalog.extract(unknown, integer) does not exist

select trim(c), trim(both 'x' from c), trim(leading from c), trim(trailing 'y' from c), trim('x' from c), trim(c, 'x') from t
ok btrim text, btrim text, ltrim text, rtrim text, btrim text, btrim text

select substring(c from 2), substring(c from 2 for 3), substring(c for 2), substring(c from 'a.*'), substring(c, 1, 2) from t
ok substring text, substring text, substring text, substring text, substring text

select position('a' in c), overlay(c placing 'x' from 2), overlay(c placing 'x' from 2 for 3), char_length(c), octet_length(c) from t
ok position integer, overlay text, overlay text, char_length integer, octet_length integer

select coalesce(a, b, 1.5), nullif(a, 1), greatest(a, b), least(c, 'x') from t
ok coalesce numeric, nullif integer, greatest bigint, least text

select coalesce(a, 'x') from t
22P02 20 invalid input syntax for type integer: "x"

select coalesce(a, c) from t
42804 20 COALESCE types integer and text cannot be matched

select coalesce()
42601 17 syntax error at or near ")"

select nullif(a, 'x') from t
22P02 18 invalid input syntax for type integer: "x"

select greatest(a, c) from t
42804 20 GREATEST types integer and text cannot be matched

select case a when 1 then 'x' when 2 then 'y' end, case when a > 1 then 1 else 2.5 end from t
ok case text, case numeric

select case a when 'x' then 1 end from t
22P02 20 invalid input syntax for type integer: "x"

select case when a then 1 end from t
42804 18 argument of CASE/WHEN must be type boolean, not type integer

select case when true then 1 else 'x' end
22P02 35 invalid input syntax for type integer: "x"

select case when true then a else c end from t
42804 28 CASE types text and integer cannot be matched

select arr[1], arr[1:2], arr[:2], arr[1:], arr[1][2], (array[[1,2],[3,4]])[1][2] from t
ok arr integer, arr integer[], arr integer[], arr integer[], arr integer, array integer

select (array[[1,2],[3,4]])[1:1][1:2]
ok array integer[]
ours: 0A000 9 a slice of several dimensions is not supported

select arr['x'] from t
22P02 12 invalid input syntax for type integer: "x"

select arr[c] from t
42804 12 array subscript must have type integer

select a[1] from t
42804 8 cannot subscript type integer because it does not support subscripting

select array[1, 2.5], array['a', 'b'], array[[1,2],[3,4]], array[arr, arr], array[]::int[], '{1,2}'::int[] from t
ok array numeric[], array text[], array integer[], array integer[], array integer[], int4 integer[]

select array[1, 'x']
22P02 17 invalid input syntax for type integer: "x"

select array[1, c] from t
42804 17 ARRAY types integer and text cannot be matched

select array[]
42P18 8 cannot determine type of empty array

select array[[1], [2, 3]]
ok array integer[]

select array[array[1], 2]
42804 24 ARRAY types integer[] and integer cannot be matched

select date '2020-01-01', timestamp '2020-01-01 00:00', interval '1' day, time '10:00', int '5', numeric(5,2) '1.234', bool 't', x'1f', b'101'
ok date date, timestamp timestamp without time zone, interval interval day, time time without time zone, int4 integer, numeric numeric(5,2), bool boolean, ?column? "bit", ?column? "bit"
ours: 0A000 130 a bit string is not supported

select date 'nope'
22007 13 invalid input syntax for type date: "nope"

select int4 'x'
22P02 13 invalid input syntax for type integer: "x"

select '5'::int, cast('5' as int), 5::text, cast(a as text), a::numeric(10,2), int4(5.6), text(a), float8(a) from t
ok int4 integer, int4 integer, text text, a text, a numeric(10,2), int4 integer, text text, float8 double precision

select a::date from t
42846 9 cannot cast type integer to date

select 1::nosuch
42704 11 type "nosuch" does not exist

select '1'::int4[], 1::int[]
22P02 8 malformed array literal: "1"

select numeric(5) '1', 1::numeric(0), 1::varchar(0)
22023 27 NUMERIC precision 0 must be between 1 and 1000

select 'a'::char(3), 'abc'::varchar(2), 'x'::bit
ok bpchar character(3), varchar character varying(2), bit bit(1)
ours: 0A000 46 type bit is not supported

select make_interval(days => 3), make_interval(1, 2, secs := 5)
ok make_interval interval, make_interval interval

select make_interval(foo => 3)
42883 8 function make_interval(foo => integer) does not exist

select make_interval(days => 3, days => 4)
42601 33 argument name "days" used more than once

select make_interval(days => 3, 4)
42601 33 positional argument cannot follow named argument

select abs(x => 3)
42883 8 function abs(x => integer) does not exist

select concat(variadic array['a', 'b']), format('%s %s', variadic array[1, 2])
ok concat text, format text

select concat_ws(',', variadic arr), concat(variadic arr) from t
ok concat_ws text, concat text

select format('%s', variadic arr) from t
ok format text
ours: 0A000 30 VARIADIC with an array that is not written out, in a call of format, is not supported

select concat('a', variadic array['b'])
42883 8 function concat(unknown, text[]) does not exist

select abs(variadic array[1])
42883 8 function abs(integer[]) does not exist

select concat(variadic 'x')
42804 24 VARIADIC argument must be an array

select concat(variadic 1)
42804 24 VARIADIC argument must be an array

