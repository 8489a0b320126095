package types

import (
	"math"
	"time"

	"streamdb/sql/sqlerr"
)

// Add is iv + o part by part; error 22008.
func (iv Interval) Add(o Interval) (Interval, error) {
	months, days := int64(iv.Months)+int64(o.Months), int64(iv.Days)+int64(o.Days)
	micros := iv.Micros + o.Micros
	if months != int64(int32(months)) || days != int64(int32(days)) || (micros > iv.Micros) != (o.Micros > 0) {
		return Interval{}, errIntervalRange()
	}
	return Interval{int32(months), int32(days), micros}, nil
}

// Sub is iv - o part by part; error 22008.
func (iv Interval) Sub(o Interval) (Interval, error) {
	n, err := o.Neg()
	if err != nil {
		return Interval{}, err
	}
	return iv.Add(n)
}

// Neg is -iv; error 22008.
func (iv Interval) Neg() (Interval, error) {
	if iv.Months == math.MinInt32 || iv.Days == math.MinInt32 || iv.Micros == math.MinInt64 {
		return Interval{}, errIntervalRange()
	}
	return Interval{-iv.Months, -iv.Days, -iv.Micros}, nil
}

// Sign is -1, 0 or +1 by the Span.
func (iv Interval) Sign() int { return iv.Cmp(Interval{}) }

// Mul is iv × f; fractions of months become days (30 a month) and fractions of days time, as in PostgreSQL. Error 22008.
func (iv Interval) Mul(f float64) (Interval, error) {
	return iv.scale(func(v float64) float64 { return v * f })
}

// Div is iv / f, as Mul; error 22012 for 0.
func (iv Interval) Div(f float64) (Interval, error) {
	if f == 0 {
		return Interval{}, errDivisionByZero()
	}
	return iv.scale(func(v float64) float64 { return v / f })
}

// roundMicro rounds a part of a day or month to what a microsecond can show.
func roundMicro(v float64) float64 { return math.RoundToEven(v*1e6) / 1e6 }

func (iv Interval) scale(by func(float64) float64) (Interval, error) {
	months, days := by(float64(iv.Months)), by(float64(iv.Days))
	if !inInt32(months) || !inInt32(days) {
		return Interval{}, errIntervalRange()
	}
	out := Interval{Months: int32(months), Days: int32(days)}
	moreDays := roundMicro((months - float64(out.Months)) * 30)
	wholeDays := float64(int32(moreDays))
	secs := roundMicro((days - float64(out.Days) + moreDays - wholeDays) * 86400)
	if math.Abs(secs) >= 86400 {
		n := int32(secs / 86400)
		out.Days += n
		secs -= float64(n) * 86400
	}
	sum := int64(out.Days) + int64(wholeDays)
	micros := math.RoundToEven(by(float64(iv.Micros)) + secs*1e6)
	if sum != int64(int32(sum)) || !(micros >= -9223372036854775808.0 && micros < 9223372036854775808.0) {
		return Interval{}, errIntervalRange()
	}
	out.Days, out.Micros = int32(sum), int64(micros)
	return out, nil
}

func inInt32(v float64) bool { return v >= math.MinInt32 && v <= math.MaxInt32 }

// AddInterval is timestamp + interval: months first, with the day of the month
// cut to the month's length, then days, then time. Infinite timestamps stay. Error 22008.
func AddInterval(ts int64, iv Interval) (int64, error) {
	if InfiniteTimestamp(ts) {
		return ts, nil
	}
	day, micros := SplitTimestamp(ts)
	if iv.Months != 0 {
		day = addMonths(day, int64(iv.Months))
	}
	ts, ok := joinTimestamp(int(day+int64(iv.Days)), micros)
	if !ok {
		return 0, errTimestampRange()
	}
	out := ts + iv.Micros
	if (out > ts) != (iv.Micros > 0) && iv.Micros != 0 || !ValidTimestamp(out) {
		return 0, errTimestampRange()
	}
	return out, nil
}

func addMonths(day, months int64) int64 {
	y, m, d := CivilFromDays(int(day))
	total := int64(y)*12 + int64(m-1) + months
	y, m = floorDiv(int(total), 12), int(total)-12*floorDiv(int(total), 12)+1
	return int64(DaysFromCivil(y, m, min(d, DaysInMonth(y, m))))
}

// AddIntervalZone is timestamptz + interval: months and days are counted on the
// calendar of loc (nil: UTC), time is elapsed time. Error 22008.
func AddIntervalZone(ts int64, iv Interval, loc *time.Location) (int64, error) {
	if iv.Months == 0 && iv.Days == 0 || loc == nil || loc == time.UTC || InfiniteTimestamp(ts) {
		return AddInterval(ts, iv)
	}
	// PostgreSQL takes months and days in two steps, each back to a moment.
	for _, step := range []Interval{{Months: iv.Months}, {Days: iv.Days}} {
		if step == (Interval{}) {
			continue
		}
		local, err := AddInterval(InZone(ts, loc), step)
		if err != nil {
			return 0, err
		}
		if ts, err = FromZone(local, loc); err != nil {
			return 0, err
		}
	}
	return AddInterval(ts, Interval{Micros: iv.Micros})
}

// AddIntervalTime is time + interval: the time of day, round the clock; months and days do not count.
func AddIntervalTime(t int64, iv Interval) int64 {
	t = (t + iv.Micros%microsPerDay) % microsPerDay
	if t < 0 {
		t += microsPerDay
	}
	return t
}

// SubTimestamps is a - b as days of 24 hours and time, without months; error 22008 for infinities.
func SubTimestamps(a, b int64) (Interval, error) {
	if InfiniteTimestamp(a) || InfiniteTimestamp(b) {
		return Interval{}, sqlerr.New(sqlerr.DatetimeOverflow, "cannot subtract infinite timestamps")
	}
	d := a - b
	if (d < a) != (b > 0) && b != 0 {
		return Interval{}, errIntervalRange()
	}
	return Interval{Micros: d}.JustifyHours()
}

// JustifyHours moves every 24 hours to a day.
func (iv Interval) JustifyHours() (Interval, error) {
	days := int64(iv.Days) + iv.Micros/microsPerDay
	micros := iv.Micros % microsPerDay
	if days > 0 && micros < 0 {
		micros += microsPerDay
		days--
	} else if days < 0 && micros > 0 {
		micros -= microsPerDay
		days++
	}
	if days != int64(int32(days)) {
		return Interval{}, errIntervalRange()
	}
	return Interval{iv.Months, int32(days), micros}, nil
}

// JustifyDays moves every 30 days to a month.
func (iv Interval) JustifyDays() (Interval, error) {
	months := int64(iv.Months) + int64(iv.Days/30)
	days := iv.Days % 30
	if months > 0 && days < 0 {
		days += 30
		months--
	} else if months < 0 && days > 0 {
		days -= 30
		months++
	}
	if months != int64(int32(months)) {
		return Interval{}, errIntervalRange()
	}
	return Interval{int32(months), days, iv.Micros}, nil
}

// Justify is justify_interval: hours to days, days to months, one sign for all parts.
func (iv Interval) Justify() (Interval, error) {
	days := int64(iv.Days) + iv.Micros/microsPerDay
	micros := iv.Micros % microsPerDay
	months := int64(iv.Months) + days/30
	days %= 30
	if months > 0 && (days < 0 || days == 0 && micros < 0) {
		days += 30
		months--
	} else if months < 0 && (days > 0 || days == 0 && micros > 0) {
		days -= 30
		months++
	}
	if days > 0 && micros < 0 {
		micros += microsPerDay
		days--
	} else if days < 0 && micros > 0 {
		micros -= microsPerDay
		days++
	}
	if months != int64(int32(months)) {
		return Interval{}, errIntervalRange()
	}
	return Interval{int32(months), int32(days), micros}, nil
}

// Age is age(a, b): the difference in years, months, days and time as a calendar tells it. Error 22008.
func Age(a, b int64) (Interval, error) {
	if InfiniteTimestamp(a) || InfiniteTimestamp(b) {
		return Interval{}, errTimestampRange()
	}
	x, y, neg := CivilOf(a), CivilOf(b), false
	if a < b {
		x, y, neg = y, x, true
	}
	months := (x.Year-y.Year)*12 + x.Month - y.Month
	days := x.Day - y.Day
	micros := x.Micros() - y.Micros()
	if micros < 0 {
		micros += microsPerDay
		days--
	}
	if days < 0 {
		days += DaysInMonth(y.Year, y.Month) // borrowed from the month of the earlier moment
		months--
	}
	iv := Interval{int32(months), int32(days), micros}
	if neg {
		return iv.Neg()
	}
	return iv, nil
}

// MakeInterval is make_interval; secs may have a fraction. Error 22008.
func MakeInterval(years, months, weeks, days, hours, mins int64, secs float64) (Interval, error) {
	m, d := years*12+months, weeks*7+days
	us := math.RoundToEven(secs * 1e6)
	if m != int64(int32(m)) || d != int64(int32(d)) || !(math.Abs(us) < 9.2e18) {
		return Interval{}, errIntervalRange()
	}
	return Interval{Micros: hours*microsPerHour + mins*microsPerMinute}.Add(Interval{int32(m), int32(d), int64(us)})
}
