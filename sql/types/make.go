package types

import (
	"math"
	"strconv"
	"time"

	"streamdb/sql/sqlerr"
)

// MakeDate is make_date; a negative year is BC. Error 22008.
func MakeDate(year, month, day int64) (int64, error) {
	y := year
	if year < 0 {
		y = year + 1
	}
	if year == 0 || abs64(year) > 1<<31 || month < 1 || month > 12 || day < 1 || day > int64(DaysInMonth(int(y), int(month))) {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "date field value out of range: %d-%02d-%02d", year, month, day)
	}
	d := int64(DaysFromCivil(int(y), int(month), int(day)))
	if !ValidDate(d) {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "date out of range: %d-%02d-%02d", year, month, day)
	}
	return d, nil
}

// MakeTime is make_time; error 22008.
func MakeTime(hour, minute int64, sec float64) (int64, error) {
	us := math.RoundToEven(sec * 1e6)
	if hour < 0 || hour > 24 || minute < 0 || minute > 59 || !(sec >= 0 && sec <= 60) || hour == 24 && (minute > 0 || us > 0) {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "time field value out of range: %d:%02d:%s", hour, minute, twoG(sec))
	}
	return hour*microsPerHour + minute*microsPerMinute + int64(us), nil
}

// twoG is C's %02g.
func twoG(v float64) string {
	s := string(appendRoundedFloat(nil, v, 6))
	if len(s) < 2 {
		s = "0" + s
	}
	return s
}

// MakeTimestamp is make_timestamp; error 22008.
func MakeTimestamp(year, month, day, hour, minute int64, sec float64) (int64, error) {
	d, err := MakeDate(year, month, day)
	if err != nil {
		return 0, err
	}
	t, err := MakeTime(hour, minute, sec)
	if err != nil {
		return 0, err
	}
	ts, ok := joinTimestamp(int(d), t)
	if !ok {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "timestamp out of range: %d-%02d-%02d %d:%02d:%s", year, month, day, hour, minute, twoG(sec))
	}
	return ts, nil
}

// MakeTimestamptz is make_timestamptz in loc; error 22008.
func MakeTimestamptz(year, month, day, hour, minute int64, sec float64, loc *time.Location) (int64, error) {
	ts, err := MakeTimestamp(year, month, day, hour, minute, sec)
	if err != nil {
		return 0, err
	}
	return FromZone(ts, loc)
}

// TimestampFromEpoch is to_timestamp: seconds since 1970, to the microsecond. Error 22008.
func TimestampFromEpoch(sec float64) (int64, error) {
	switch {
	case sec != sec:
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "timestamp cannot be NaN")
	case math.IsInf(sec, 1):
		return TimestampInfinity, nil
	case math.IsInf(sec, -1):
		return TimestampNegInfinity, nil
	}
	us := math.RoundToEven((sec - unixEpoch) * 1e6)
	if !(us >= minTimestamp && us < endTimestamp) {
		return 0, sqlerr.New(sqlerr.DatetimeOverflow, "timestamp out of range: \"%s\"", strconv.FormatFloat(sec, 'g', 6, 64))
	}
	return int64(us), nil
}
