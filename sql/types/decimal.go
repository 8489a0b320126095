package types

import "github.com/cockroachdb/apd/v3"

// A Decimal is PostgreSQL's numeric: coefficient × 10^-scale, with the scale
// kept as stored (1.50 stays 1.50). A coefficient that fits an int64 is held
// inline; a longer one, NaN and the infinities are held by apd.
type Decimal struct {
	coef  int64
	scale int32        // digits after the point, ≥ 0
	big   *apd.Decimal // nil: coef and scale hold the value; immutable once set
}
