package expr

import (
	"time"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// byUnit makes a kernel whose first argument names a unit, which is looked up
// once as long as it stays the same; ok false is NULL.
func byUnit[A, R any](find func(name string) (types.Unit, error), f func(ctx *Ctx, u types.Unit, a A) (v R, ok bool, err error)) maker {
	return func(fn *Func) Kernel {
		return func(ctx *Ctx, args []chunk.Column, n int) (chunk.Column, error) {
			names, a := chunk.Of[string](args[0]), chunk.Of[A](args[1])
			nm, am := mask(len(names.Data), n), mask(len(a.Data), n)
			out := newResult[R](n, args...)
			var unit types.Unit
			var name string
			known := false
			for i := range out.data {
				if out.null(i) {
					continue
				}
				var err error
				if s := names.Data[i&nm]; !known || s != name {
					unit, err = find(s)
					name, known = s, err == nil
				}
				var v R
				ok := false
				if err == nil {
					v, ok, err = f(ctx, unit, a.Data[i&am])
				}
				if err != nil {
					if err = ctx.RowError(i, err); err != nil {
						return nil, err
					}
				}
				if !ok {
					out.setNull(i)
					continue
				}
				out.data[i] = v
			}
			return out.column(fn.Ret), nil
		}
	}
}

// datetimes adds the functions over dates and times.
func datetimes(r *registry) {
	unitFor := func(t types.Type) func(string) (types.Unit, error) {
		return func(name string) (types.Unit, error) { return types.ExtractUnit(name, t) }
	}
	extract := func(t types.Type, word string, ints func(ctx *Ctx, u types.Unit, v int64) (types.Decimal, bool)) {
		sig := "(text," + typname(t) + ") "
		r.def("extract"+sig+"numeric"+word, byUnit(unitFor(t), func(ctx *Ctx, u types.Unit, v int64) (types.Decimal, bool, error) {
			d, ok := ints(ctx, u, v)
			return d, ok, nil
		}))
		r.def("date_part"+sig+"float8"+word, byUnit(partUnit(t), func(ctx *Ctx, u types.Unit, v int64) (float64, bool, error) {
			if t.OID == types.OIDDate { // date_part reads a date as the timestamp at its midnight
				ts, err := types.DateToTimestamp(v)
				if err != nil {
					return 0, false, err
				}
				d, ok := u.OfTimestamp(ts)
				return d.Float64(), ok, nil
			}
			d, ok := ints(ctx, u, v)
			return d.Float64(), ok, nil
		}))
	}
	extract(types.Date, "", func(_ *Ctx, u types.Unit, v int64) (types.Decimal, bool) { return u.OfDate(v) })
	extract(types.Time, "", func(_ *Ctx, u types.Unit, v int64) (types.Decimal, bool) { return u.OfTime(v), true })
	extract(types.Timestamp, "", func(_ *Ctx, u types.Unit, v int64) (types.Decimal, bool) { return u.OfTimestamp(v) })
	extract(types.Timestamptz, " stable", func(ctx *Ctx, u types.Unit, v int64) (types.Decimal, bool) { return u.OfTimestamptz(v, ctx.zone()) })
	r.def("extract(text,interval) numeric", byUnit(unitFor(types.IntervalT), func(_ *Ctx, u types.Unit, iv types.Interval) (types.Decimal, bool, error) {
		return u.OfInterval(iv), true, nil
	}))
	r.def("date_part(text,interval) float8", byUnit(unitFor(types.IntervalT), func(_ *Ctx, u types.Unit, iv types.Interval) (float64, bool, error) {
		return u.OfInterval(iv).Float64(), true, nil
	}))

	truncFor := func(t types.Type) func(string) (types.Unit, error) {
		return func(name string) (types.Unit, error) { return types.TruncUnit(name, t) }
	}
	r.def("date_trunc(text,timestamp) timestamp", byUnit(truncFor(types.Timestamp), func(_ *Ctx, u types.Unit, ts int64) (int64, bool, error) {
		v, err := u.Trunc(ts)
		return v, err == nil, err
	}))
	r.def("date_trunc(text,timestamptz) timestamptz stable", byUnit(truncFor(types.Timestamptz), func(ctx *Ctx, u types.Unit, ts int64) (int64, bool, error) {
		v, err := u.TruncZone(ts, ctx.zone())
		return v, err == nil, err
	}))
	r.def("date_trunc(text,interval) interval", byUnit(truncFor(types.IntervalT), func(_ *Ctx, u types.Unit, iv types.Interval) (types.Interval, bool, error) {
		return u.TruncInterval(iv), true, nil
	}))
	r.def("date_trunc(text,timestamptz,text) timestamptz", e3(func(name string, ts int64, zone string) (int64, error) {
		u, err := types.TruncUnit(name, types.Timestamptz)
		if err != nil {
			return 0, err
		}
		loc, err := types.LoadZone(zone)
		if err != nil {
			return 0, err
		}
		return u.TruncZone(ts, loc)
	}))
	r.def("date_bin(interval,timestamp,timestamp) timestamp", e3(types.DateBin))
	r.def("date_bin(interval,timestamptz,timestamptz) timestamptz", e3(types.DateBin))

	// The clock.
	clock := func(f func(ctx *Ctx) (int64, error)) maker {
		return boxed(func(ctx *Ctx, a []types.Datum) (types.Datum, error) {
			v, err := f(ctx)
			if len(a) > 0 && err == nil {
				v = types.RoundMicros(v, int(a[0].Int()))
			}
			return types.NewInt(v), err
		})
	}
	now := clock(func(ctx *Ctx) (int64, error) { return ctx.Now, nil })
	r.defs(now, "now() timestamptz stable", "transaction_timestamp() timestamptz stable", "statement_timestamp() timestamptz stable",
		"current_timestamp() timestamptz stable", "current_timestamp(int4) timestamptz stable", "proctime() timestamptz stable")
	r.def("clock_timestamp() timestamptz volatile", clock(func(ctx *Ctx) (int64, error) {
		if ctx.Style != nil && ctx.Style.Now != nil {
			return ctx.Style.Now(), nil
		}
		return ctx.Now, nil
	}))
	local := clock(func(ctx *Ctx) (int64, error) { return types.InZone(ctx.Now, ctx.zone()), nil })
	r.defs(local, "localtimestamp() timestamp stable", "localtimestamp(int4) timestamp stable")
	localTime := clock(func(ctx *Ctx) (int64, error) { return types.TimestampToTime(types.InZone(ctx.Now, ctx.zone())), nil })
	r.defs(localTime, "localtime() time stable", "localtime(int4) time stable")
	r.def("current_date() date stable", clock(func(ctx *Ctx) (int64, error) { return today(ctx), nil }))

	r.def("age(timestamp,timestamp) interval", e2(types.Age))
	r.def("age(timestamptz,timestamptz) interval stable", lift2(func(ctx *Ctx, a, b int64) (types.Interval, error) {
		return types.Age(types.InZone(a, ctx.zone()), types.InZone(b, ctx.zone()))
	}))
	r.def("age(timestamp) interval stable", lift1(func(ctx *Ctx, ts int64) (types.Interval, error) {
		midnight, err := types.DateToTimestamp(today(ctx))
		if err != nil {
			return types.Interval{}, err
		}
		return types.Age(midnight, ts)
	}))
	r.def("age(timestamptz) interval stable", lift1(func(ctx *Ctx, ts int64) (types.Interval, error) {
		midnight, err := types.DateToTimestamp(today(ctx))
		if err != nil {
			return types.Interval{}, err
		}
		return types.Age(midnight, types.InZone(ts, ctx.zone()))
	}))

	r.def("make_date(int4,int4,int4) date", e3(types.MakeDate))
	r.def("make_time(int4,int4,float8) time", e3(types.MakeTime))
	r.def("make_timestamp(int4,int4,int4,int4,int4,float8) timestamp", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		v, err := types.MakeTimestamp(a[0].Int(), a[1].Int(), a[2].Int(), a[3].Int(), a[4].Int(), a[5].Float())
		return types.NewInt(v), err
	}))
	zonedMake := boxed(func(ctx *Ctx, a []types.Datum) (types.Datum, error) {
		loc := ctx.zone()
		if len(a) > 6 {
			var err error
			if loc, err = types.LoadZone(a[6].Str()); err != nil {
				return types.Datum{}, err
			}
		}
		v, err := types.MakeTimestamptz(a[0].Int(), a[1].Int(), a[2].Int(), a[3].Int(), a[4].Int(), a[5].Float(), loc)
		return types.NewInt(v), err
	})
	r.defs(zonedMake, "make_timestamptz(int4,int4,int4,int4,int4,float8) timestamptz stable",
		"make_timestamptz(int4,int4,int4,int4,int4,float8,text) timestamptz stable")
	// make_interval(years, months, weeks, days, hours, mins, secs), all optional.
	mk := boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		var n [6]int64
		secs := 0.0
		for i, d := range a {
			if i < 6 {
				n[i] = d.Int()
			} else {
				secs = d.Float()
			}
		}
		iv, err := types.MakeInterval(n[0], n[1], n[2], n[3], n[4], n[5], secs)
		return types.NewInterval(iv), err
	})
	sig := ""
	r.def("make_interval() interval", mk)
	for i := range 7 {
		if i > 0 {
			sig += ","
		}
		if i < 6 {
			sig += "int4"
		} else {
			sig += "float8"
		}
		r.def("make_interval("+sig+") interval", mk)
	}
	r.def("justify_days(interval) interval", e1(types.Interval.JustifyDays))
	r.def("justify_hours(interval) interval", e1(types.Interval.JustifyHours))
	r.def("justify_interval(interval) interval", e1(types.Interval.Justify))
	r.def("to_timestamp(float8) timestamptz", e1(types.TimestampFromEpoch))
	r.def("isfinite(date) bool", f1(func(d int64) bool { return !types.InfiniteDate(d) }))
	r.defs(f1(func(ts int64) bool { return !types.InfiniteTimestamp(ts) }), "isfinite(timestamp) bool", "isfinite(timestamptz) bool")
	r.def("isfinite(interval) bool", f1(func(types.Interval) bool { return true }))

	// x AT TIME ZONE z is timezone(z, x).
	zone := func(f func(ts int64, loc *time.Location) (int64, error)) maker {
		return e2(func(name string, ts int64) (int64, error) {
			if types.InfiniteTimestamp(ts) {
				return ts, nil
			}
			loc, err := types.LoadZone(name)
			if err != nil {
				return 0, err
			}
			return f(ts, loc)
		})
	}
	toLocal := func(ts int64, loc *time.Location) (int64, error) { return types.InZone(ts, loc), nil }
	r.def("timezone(text,timestamptz) timestamp", zone(toLocal))
	r.def("timezone(text,timestamp) timestamptz", zone(types.FromZone))
	offset := func(f func(ts int64, loc *time.Location) (int64, error)) maker {
		return e2(func(iv types.Interval, ts int64) (int64, error) {
			if types.InfiniteTimestamp(ts) {
				return ts, nil
			}
			if iv.Months != 0 || iv.Days != 0 {
				return 0, sqlerr.New(sqlerr.InvalidParameter, "interval time zone \"%s\" must not include months or days", iv.String())
			}
			return f(ts, types.OffsetZone(int(iv.Micros/1_000_000)))
		})
	}
	r.def("timezone(interval,timestamptz) timestamp", offset(toLocal))
	r.def("timezone(interval,timestamp) timestamptz", offset(types.FromZone))
}

// partUnit is the unit of date_part, which takes units of a time from a date.
func partUnit(t types.Type) func(string) (types.Unit, error) {
	if t.OID == types.OIDDate {
		t = types.Timestamp
	}
	return func(name string) (types.Unit, error) { return types.ExtractUnit(name, t) }
}

func today(ctx *Ctx) int64 { return types.TimestampToDate(types.InZone(ctx.Now, ctx.zone())) }

// typname is the name of a type in signatures.
func typname(t types.Type) string {
	info, _ := types.InfoOf(t.OID)
	return info.Name
}
