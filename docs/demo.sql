-- A first look: two tables, a view over their join, a view on the view.
CREATE TABLE shops (shop_id int PRIMARY KEY, name text);
CREATE TABLE sales (sale_id int PRIMARY KEY, shop_id int, amount numeric, sold_at timestamp);

CREATE MATERIALIZED VIEW spend AS
  SELECT h.name, count(*) AS sales, sum(s.amount) AS total, max(s.amount) AS best
  FROM sales s JOIN shops h ON h.shop_id = s.shop_id GROUP BY h.name;
CREATE MATERIALIZED VIEW top3 AS SELECT name, total FROM spend ORDER BY total DESC, name LIMIT 3;

INSERT INTO shops VALUES (1, 'Harbour'), (2, 'Market'), (3, 'Station'), (4, 'Hill');
INSERT INTO sales VALUES (1, 1, 12.50, '2026-01-01 09:00'), (2, 1, 7.25, '2026-01-01 09:05'), (3, 2, 99.00, '2026-01-01 09:10'), (4, 3, 5.00, '2026-01-01 09:20');

-- The INSERT has returned, so both views have its rows.
SELECT * FROM spend ORDER BY name;
SELECT * FROM top3 ORDER BY total DESC;

UPDATE sales SET amount = amount * 2 WHERE shop_id = 1;
DELETE FROM sales WHERE sale_id = 3;
SELECT * FROM spend ORDER BY name;

-- How it is built.
EXPLAIN CREATE MATERIALIZED VIEW spend_again AS
  SELECT h.name, count(*) AS sales, sum(s.amount) AS total, max(s.amount) AS best
  FROM sales s JOIN shops h ON h.shop_id = s.shop_id GROUP BY h.name;

DROP TABLE sales, shops CASCADE;
