package expr

import (
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// datetimeOps adds the arithmetic of dates, times, timestamps and intervals.
func datetimeOps(r *registry) {
	r.def("+(date,int4) date", e2(addDays))
	r.def("+(int4,date) date", e2(func(n, d int64) (int64, error) { return addDays(d, n) }))
	r.def("-(date,int4) date", e2(func(d, n int64) (int64, error) { return addDays(d, -n) }))
	r.def("-(date,date) int4", e2(func(a, b int64) (int64, error) {
		if types.InfiniteDate(a) || types.InfiniteDate(b) {
			return 0, sqlerr.New(sqlerr.DatetimeOverflow, "cannot subtract infinite dates")
		}
		return a - b, nil
	}))
	dateInterval := func(d int64, iv types.Interval) (int64, error) {
		ts, err := types.DateToTimestamp(d)
		if err != nil {
			return 0, err
		}
		return types.AddInterval(ts, iv)
	}
	r.def("+(date,interval) timestamp", e2(dateInterval))
	r.def("+(interval,date) timestamp", e2(func(iv types.Interval, d int64) (int64, error) { return dateInterval(d, iv) }))
	r.def("-(date,interval) timestamp", e2(func(d int64, iv types.Interval) (int64, error) {
		neg, err := iv.Neg()
		if err != nil {
			return 0, err
		}
		return dateInterval(d, neg)
	}))
	r.def("+(date,time) timestamp", e2(func(d, t int64) (int64, error) { return dateInterval(d, types.Interval{Micros: t}) }))
	r.def("+(time,date) timestamp", e2(func(t, d int64) (int64, error) { return dateInterval(d, types.Interval{Micros: t}) }))

	r.def("+(timestamp,interval) timestamp", e2(types.AddInterval))
	r.def("+(interval,timestamp) timestamp", e2(func(iv types.Interval, ts int64) (int64, error) { return types.AddInterval(ts, iv) }))
	r.def("-(timestamp,interval) timestamp", e2(func(ts int64, iv types.Interval) (int64, error) {
		neg, err := iv.Neg()
		if err != nil {
			return 0, err
		}
		return types.AddInterval(ts, neg)
	}))
	r.def("+(timestamptz,interval) timestamptz stable", lift2(func(ctx *Ctx, ts int64, iv types.Interval) (int64, error) {
		return types.AddIntervalZone(ts, iv, ctx.zone())
	}))
	r.def("+(interval,timestamptz) timestamptz stable", lift2(func(ctx *Ctx, iv types.Interval, ts int64) (int64, error) {
		return types.AddIntervalZone(ts, iv, ctx.zone())
	}))
	r.def("-(timestamptz,interval) timestamptz stable", lift2(func(ctx *Ctx, ts int64, iv types.Interval) (int64, error) {
		neg, err := iv.Neg()
		if err != nil {
			return 0, err
		}
		return types.AddIntervalZone(ts, neg, ctx.zone())
	}))
	r.def("-(timestamp,timestamp) interval", e2(types.SubTimestamps))
	r.def("-(timestamptz,timestamptz) interval", e2(types.SubTimestamps))

	r.def("+(time,interval) time", f2(types.AddIntervalTime))
	r.def("+(interval,time) time", f2(func(iv types.Interval, t int64) int64 { return types.AddIntervalTime(t, iv) }))
	r.def("-(time,interval) time", f2(func(t int64, iv types.Interval) int64 {
		return types.AddIntervalTime(t, types.Interval{Micros: -iv.Micros})
	}))
	r.def("-(time,time) interval", f2(func(a, b int64) types.Interval { return types.Interval{Micros: a - b} }))

	r.def("+(interval,interval) interval", e2(types.Interval.Add))
	r.def("-(interval,interval) interval", e2(types.Interval.Sub))
	r.def("-(interval) interval", e1(types.Interval.Neg))
	r.def("*(interval,float8) interval", e2(types.Interval.Mul))
	r.def("*(float8,interval) interval", e2(func(f float64, iv types.Interval) (types.Interval, error) { return iv.Mul(f) }))
	r.def("/(interval,float8) interval", e2(types.Interval.Div))
}

func addDays(d, n int64) (int64, error) {
	if types.InfiniteDate(d) {
		return d, nil
	}
	if d += n; !types.ValidDate(d) {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "date out of range")
	}
	return d, nil
}
