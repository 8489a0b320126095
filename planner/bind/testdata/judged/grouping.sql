CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, c text, d date, ts timestamp, tz timestamptz, n numeric(10,2), f float8, r real, s smallint, v varchar(5), bo boolean, iv interval, arr int[]);
CREATE TABLE u (id int, a int, c text, x text, PRIMARY KEY (id, a));
CREATE TABLE w (x int);
CREATE TABLE g (id int PRIMARY KEY, a int DEFAULT 5, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0));
CREATE VIEW tv AS SELECT id, a FROM t;

select a, count(*) from t group by rollup(a)
ok a integer, count bigint

select a, b, c, grouping(a,b), grouping(c) from t group by grouping sets ((a,b),(c),())
ok a integer, b bigint, c text, grouping integer, grouping integer

select a, b, sum(n) from t group by cube(a, b)
ok a integer, b bigint, sum numeric

select a, b, sum(n) from t group by rollup(a, (b, c))
ok a integer, b bigint, sum numeric

select a, b, sum(n) from t group by a, rollup(b), cube(c)
ok a integer, b bigint, sum numeric

select a, b, c from t group by rollup(a)
42803 11 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

select grouping(b) from t group by rollup(a)
42803 17 arguments to GROUPING must be grouping expressions of the associated query level

select grouping(a) from t
42803 17 arguments to GROUPING must be grouping expressions of the associated query level

select a from t where grouping(a) = 0 group by a
42803 23 grouping operations are not allowed in WHERE

select a from t group by grouping(a)
42803 26 grouping operations are not allowed in GROUP BY

select a, grouping(a) from t group by a
ok a integer, grouping integer

select grouping(a+1), a+1 from t group by rollup(a+1)
ok grouping integer, ?column? integer

select sum(grouping(a)) from t group by a
42803 12 aggregate function calls cannot be nested

select a from t group by rollup(a) having grouping(a) = 1
ok a integer

select a from t group by rollup(a) order by grouping(a), a
ok a integer

select a from t join u on grouping(t.a) = 1
42803 27 grouping operations are not allowed in JOIN conditions

select count(*) filter (where grouping(a)=0) from t group by a
42803 31 grouping operations are not allowed in FILTER

select id, a, b from t group by rollup(id, a)
42803 15 column "t.b" must appear in the GROUP BY clause or be used in an aggregate function

select id, a, b from t group by grouping sets ((id, a), (id))
ok id integer, a integer, b bigint

select a, count(*) from t group by ()
42803 8 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select count(*) from t group by grouping sets ((), ())
ok count bigint

select a from t group by distinct rollup(a), rollup(a)
ok a integer

select a, b from t group by grouping sets (rollup(a), cube(b))
ok a integer, b bigint

select a, b from t group by grouping sets (grouping sets (a, (a, b)), ())
ok a integer, b bigint

select a+b from t group by rollup(a, b)
ok ?column? bigint

select a+c from t group by rollup(a, b)
42883 9 operator does not exist: integer + text

select rank() over (order by grouping(a)), sum(sum(b)) over (partition by grouping(a)) from t group by rollup(a)
ok rank bigint, sum numeric

select 1 as x, count(*) from t group by rollup(x)
ok x integer, count bigint

select a as x, count(*) from t group by rollup(1)
ok x integer, count bigint

select a from t group by rollup(2)
42P10 33 GROUP BY position 2 is not in select list

select a from t group by cube(id,a,b,c,d,ts,tz,n,f,r,s,v,bo)
54011 26 CUBE is limited to 12 elements

select (select grouping(a) from u limit 1) from t group by a
42803 25 arguments to GROUPING must be grouping expressions of the associated query level

select (select grouping(t.a) from u limit 1) from t group by rollup(a)
ok grouping integer
ours: 42803 25 arguments to GROUPING must be grouping expressions of the associated query level

select grouping(rank() over ()) from t group by a
42803 17 aggregate function calls cannot contain window function calls

select a, (select max(u.x) from u where u.a = t.a) from t group by rollup(a)
ok a integer, max text

select a, (select max(u.x) from u where u.a = t.b) from t group by rollup(a)
42803 47 subquery uses ungrouped column "t.b" from outer query

select percentile_cont(0.5) within group (order by a) from t
ok percentile_cont double precision

select percentile_cont(array[0.25,0.5]) within group (order by f), percentile_disc(0.5) within group (order by c desc), mode() within group (order by c) from t
ok percentile_cont double precision[], percentile_disc text, mode text

select percentile_cont(a) within group (order by f) from t
42803 24 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select percentile_cont(f) within group (order by a) from t group by f
ok percentile_cont double precision

select percentile_cont(0.5) within group (order by c) from t
42883 8 function percentile_cont(numeric, text) does not exist

select percentile_cont(0.5, a) from t
42809 8 WITHIN GROUP is required for ordered-set aggregate percentile_cont

select percentile_cont(0.5) from t
42883 8 function percentile_cont(numeric) does not exist

select percentile_cont('x') within group (order by a) from t
22P02 24 invalid input syntax for type double precision: "x"

select mode(a) within group (order by c) from t
42883 8 function mode(integer, text) does not exist

select mode() within group (order by a, b) from t
42883 8 function mode(integer, bigint) does not exist

select mode() within group (order by a) filter (where b > 1) from t
ok mode integer

select percentile_cont(distinct 0.5) within group (order by a) from t
42601 38 cannot use DISTINCT with WITHIN GROUP

select percentile_cont(0.5) within group (order by sum(a)) from t
42803 52 aggregate function calls cannot be nested

select rank(1) within group (order by a) from t
ok rank bigint

select rank(1, 'x') within group (order by a desc, c nulls first) filter (where b > 1), percent_rank(2) within group (order by a), cume_dist(1.5) within group (order by a), dense_rank('x') within group (order by c) from t
ok rank bigint, percent_rank double precision, cume_dist double precision, dense_rank bigint

select rank(1) within group (order by a, b) from t
42883 8 function rank(integer, integer, bigint) does not exist

select rank(a) within group (order by b) from t
42803 13 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select a, rank(a) within group (order by b) from t group by a
ok a integer, rank bigint

select rank('x') within group (order by a) from t
22P02 13 invalid input syntax for type integer: "x"

select rank(true) within group (order by a) from t
42804 13 WITHIN GROUP types integer and boolean cannot be matched

select lag(1) within group (order by a) from t
42809 8 window function lag requires an OVER clause

select row_number() within group (order by a) from t
42883 8 function row_number(integer) does not exist

select rank() within group (order by a) from t
42883 8 function rank(integer) does not exist

select percentile_cont(0.5) within group (order by a) over () from t
0A000 8 OVER is not supported for ordered-set aggregate percentile_cont

select count(distinct a order by b) from t
42P10 34 in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list

select array_agg(distinct a order by a desc) filter (where b > 0) from t
ok array_agg integer[]

select string_agg(distinct c, ',' order by c) from t
ok string_agg text

select string_agg(distinct c, ',' order by c || 'x') from t
42P10 44 in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list

select count(distinct *) from t
42601 23 syntax error at or near "*"

select array_agg(a order by 1) from t
ok array_agg integer[]

select count(a, b) from t
42883 8 function count(integer, bigint) does not exist

select sum(c) from t
42883 8 function sum(text) does not exist

select sum('x') from t
42725 8 function sum(unknown) is not unique

select max(bo) from t
42883 8 function max(boolean) does not exist

select string_agg(a, ',') from t
42883 8 function string_agg(integer, unknown) does not exist

