CREATE TABLE t (id int PRIMARY KEY, a int, b bigint, c text, d date, ts timestamp, tz timestamptz, n numeric(10,2), f float8, r real, s smallint, v varchar(5), bo boolean, iv interval, arr int[]);
CREATE TABLE u (id int, a int, c text, x text, PRIMARY KEY (id, a));
CREATE TABLE w (x int);
CREATE TABLE g (id int PRIMARY KEY, a int DEFAULT 5, b int GENERATED ALWAYS AS (a * 2) STORED, CHECK (a > 0));
CREATE VIEW tv AS SELECT id, a FROM t;

select row_number() from t
42809 8 window function row_number requires an OVER clause

select row_number() over wx from t
42704 26 window "wx" does not exist

select row_number() over (wx order by a) from t
42704 26 window "wx" does not exist

select abs(a) over () from t
42809 8 OVER specified, but abs is not a window function nor an aggregate function

select generate_series(1,2) over () from t
42809 8 OVER specified, but generate_series is not a window function nor an aggregate function

select sum(distinct a) over () from t
0A000 8 DISTINCT is not implemented for window functions

select string_agg(c, ',' order by a) over () from t
0A000 8 aggregate ORDER BY is not implemented for window functions

select row_number() filter (where true) over () from t
0A000 8 FILTER is not implemented for non-aggregate window functions

select count() over () from t
42809 8 count(*) must be used to call a parameterless aggregate function

select count() from t
42809 8 count(*) must be used to call a parameterless aggregate function

select sum(row_number() over ()) over () from t
42P20 12 window function calls cannot be nested

select sum(row_number() over ()) from t
42803 12 aggregate function calls cannot contain window function calls

select a from t where row_number() over () > 1
42P20 23 window functions are not allowed in WHERE

select a from t group by a having row_number() over () > 1
42P20 35 window functions are not allowed in HAVING

select a from t group by row_number() over ()
42P20 26 window functions are not allowed in GROUP BY

select row_number() over () as x from t group by x
42P20 8 window functions are not allowed in GROUP BY

select a from t join u on row_number() over () = 1
42P20 27 window functions are not allowed in JOIN conditions

select a from t limit row_number() over ()
42P20 23 window functions are not allowed in LIMIT

values (row_number() over ())
42P20 9 window functions are not allowed in VALUES

update u set x = row_number() over ()
42P20 18 window functions are not allowed in UPDATE

insert into w values (row_number() over ())
42P20 23 window functions are not allowed in VALUES

delete from w where rank() over () = 1
42P20 21 window functions are not allowed in WHERE

delete from w returning rank() over ()
42P20 25 window functions are not allowed in RETURNING

select * from generate_series(1, row_number() over ())
42P20 34 window functions are not allowed in functions in FROM

select rank() over w1 from t window w1 as (order by a), w1 as (order by b)
42P20 63 window "w1" is already defined

select rank() over w1 from t window w1 as (w2 order by a), w2 as (partition by b)
42704 43 window "w2" does not exist

select rank() over (w1 partition by a) from t window w1 as (order by b)
42P20 20 cannot override PARTITION BY clause of window "w1"

select rank() over (w1 order by a) from t window w1 as (order by b)
42P20 20 cannot override ORDER BY clause of window "w1"

select rank() over (w1) from t window w1 as (order by b rows 1 preceding)
42P20 20 cannot copy window "w1" because it has a frame clause

select rank() over (w1 order by a) from t window w1 as (rows 1 preceding)
42P20 20 cannot copy window "w1" because it has a frame clause

select rank() over (w1 rows unbounded preceding) from t window w1 as (partition by a)
ok rank bigint

select sum(a) over (groups 1 preceding) from t
42P20 20 GROUPS mode requires an ORDER BY clause

select sum(a) over (order by a, b range 1 preceding) from t
42P20 20 RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column

select sum(a) over (range 1 preceding) from t
42P20 20 RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column

select sum(a) over (order by c range 1 preceding) from t
0A000 38 RANGE with offset PRECEDING/FOLLOWING is not supported for column type text

select sum(a) over (order by ts range 1 preceding) from t
0A000 39 RANGE with offset PRECEDING/FOLLOWING is not supported for column type timestamp without time zone and offset type integer

select sum(a) over (order by a range interval '1 day' preceding) from t
0A000 47 RANGE with offset PRECEDING/FOLLOWING is not supported for column type integer and offset type interval

select sum(a) over (order by a range 1.5 preceding) from t
0A000 38 RANGE with offset PRECEDING/FOLLOWING is not supported for column type integer and offset type numeric

select sum(a) over (order by n range 1 preceding) from t
ok sum bigint

select sum(a) over (order by ts range '1 day' preceding) from t
ok sum bigint

select sum(a) over (order by a rows a preceding) from t
42P10 37 argument of ROWS must not contain variables

select sum(a) over (order by a rows 'x'::text preceding) from t
42804 37 argument of ROWS must be type bigint, not type text

select sum(a) over (order by a rows 1.5 preceding) from t
ok sum bigint

select sum(a) over (order by a range '1 day' preceding) from t
22P02 38 invalid input syntax for type integer: "1 day"

select sum(a) over (order by a rows sum(a) preceding) from t
42803 37 aggregate functions are not allowed in window ROWS

select sum(a) over (order by a range sum(a) preceding) from t
42803 38 aggregate functions are not allowed in window RANGE

select sum(a) over (order by a rows rank() over () preceding) from t
42P20 37 window functions are not allowed in window definitions

select sum(a) over (order by a rows between unbounded following and current row) from t
42P20 45 frame start cannot be UNBOUNDED FOLLOWING

select sum(a) over (order by a rows between current row and unbounded preceding) from t
42P20 61 frame end cannot be UNBOUNDED PRECEDING

select sum(a) over (order by a rows between current row and 1 preceding) from t
42P20 61 frame starting from current row cannot have preceding rows

select sum(a) over (order by a rows between 1 following and current row) from t
42P20 61 frame starting from following row cannot have preceding rows

select sum(a) over (order by a rows 1 following) from t
42P20 37 frame starting from following row cannot end with current row

select sum(a) over (partition by rank() over ()) from t
42P20 34 window functions are not allowed in window definitions

select sum(a) over (order by rank() over ()) from t
42P20 30 window functions are not allowed in window definitions

select ntile('x') over () from t
22P02 14 invalid input syntax for type integer: "x"

select ntile(c) over () from t
42883 8 function ntile(text) does not exist

select lag(a, b) over () from t
42883 8 function lag(integer, bigint) does not exist

select lag(a, 1, c) over () from t
42883 8 function lag(integer, integer, text) does not exist

select lag(a, 1, 'x') over () from t
22P02 18 invalid input syntax for type integer: "x"

select first_value() over () from t
42883 8 function first_value() does not exist

select rank(a) over () from t
42809 8 WITHIN GROUP is required for ordered-set aggregate rank

select nofn(a) over () from t
42883 8 function nofn(integer) does not exist

select sum(a) over (), b from t group by b
42803 12 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select sum(sum(a)) over (order by a) from t group by b
42803 35 column "t.a" must appear in the GROUP BY clause or be used in an aggregate function

select sum(generate_series(1,2)) over () from t
0A000 12 window function calls cannot contain set-returning function calls

select rank() within group (order by a) over () from t
0A000 8 OVER is not supported for ordered-set aggregate rank

select sum(a) within group (order by b) from t
42883 8 function sum(integer, bigint) does not exist
ours: 42809 8 sum is not an ordered-set aggregate, so it cannot have WITHIN GROUP

select c.x, rank() over (order by nope) from t
42P01 8 missing FROM-clause entry for table "c"

select abs(distinct a) from t
42809 8 DISTINCT specified, but abs is not an aggregate function

select abs(*) from t
42883 8 function abs() does not exist

select abs(a order by b) from t
42809 8 ORDER BY specified, but abs is not an aggregate function

select abs(a) filter (where true) from t
42809 8 FILTER specified, but abs is not an aggregate function

select abs(a) within group (order by b) from t
42883 8 function abs(integer, bigint) does not exist

select row_number() over (order by by) from t
42703 36 column "by" does not exist

select count(*) filter (where count(*) > 1) from t
42803 31 aggregate functions are not allowed in FILTER

select count(*) filter (where rank() over () > 1) from t
42P20 31 window functions are not allowed in FILTER

select count(*) filter (where a) from t
42804 31 argument of FILTER must be type boolean, not type integer

select count(*) filter (where a > 1) over (order by a), sum(a) over (order by a) from t
ok count bigint, sum bigint

select distinct rank() over (order by a) from t order by rank() over (order by a)
ok rank bigint

select distinct rank() over (order by a) from t order by rank() over (order by b)
42P10 58 for SELECT DISTINCT, ORDER BY expressions must appear in select list

select max(a order by rank() over ()) from t
42803 23 aggregate function calls cannot contain window function calls

select a from t order by rank() over (order by b)
ok a integer

select sum(a) over w2, lag(a) over w1 from t window w1 as (partition by c), w2 as (w1 order by d)
ok sum bigint, lag integer

select sum(count(*)) over (partition by c order by min(a)) from t group by c
ok sum numeric

select case when rank() over () > 1 then 1 end from t
ok case integer

select (select rank() over (order by t.a) from u limit 1) from t
ok rank bigint

select row_number() over (order by 1), rank() over (partition by 'x') from t
ok row_number bigint, rank bigint

select nth_value(a, 2) over (order by a rows between 1 preceding and 1 following exclude current row) from t
ok nth_value integer

select sum(a) over (order by a rows between 1 preceding and current row exclude ties), sum(a) over (order by a groups between 1 preceding and 1 following exclude group) from t
ok sum bigint, sum bigint

select sum(a) over (order by d range between '1 day' preceding and interval '1 month' following) from t
ok sum bigint

