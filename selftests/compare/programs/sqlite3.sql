create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 200000)
insert into t select i, hex(i * 7919), i * 0.5 from n;
create index b on t(b);
select count(*), sum(x.c) from t x join t y on x.b = y.b where y.a % 3 = 0;
select b, max(c) from t group by substr(b, 1, 3) order by 2 desc limit 5;
