package expr

import (
	"strconv"
	"strings"

	"streamdb/sql/sqlerr"
	"streamdb/sql/types"
)

// A numToken is one pattern of a numeric template; lit is text to copy.
type numToken struct {
	name string // "9", "0", ".", ",", "S", "MI", "PL", "SG", "PR", "L", "V", "TH", "th", "EEEE", "RN", "rn"; "": lit
	lit  string
}

// A numFormat is a numeric template taken apart.
type numFormat struct {
	tokens    []numToken
	pre, post int // digit positions before and after the point (or V)
	zeroFrom  int // first 0 before the point: from there on leading zeros show; pre: none
	zeroTo    int // fraction digits up to the last 0
	fill      bool
	decimal   bool
	shift     bool // V
	bracket   bool // PR
	sign      int  // S: -1 leading, +1 trailing
	mi, pl    bool
	sg        bool
	exp       bool
	roman     bool
}

var numPatterns = []string{"EEEE", "FM", "MI", "PL", "SG", "PR", "TH", "RN", "9", "0", ".", "D", ",", "G", "S", "L", "V", "B"}

func errTemplate(format string, args ...any) error {
	return sqlerr.New(sqlerr.Syntax, format, args...)
}

func parseNumFormat(s string) (*numFormat, error) {
	f := &numFormat{}
	seenZero := false
	for i := 0; i < len(s); {
		if s[i] == '"' {
			end := i + 1
			var lit strings.Builder
			for end < len(s) && s[end] != '"' {
				if s[end] == '\\' && end+1 < len(s) {
					end++
				}
				lit.WriteByte(s[end])
				end++
			}
			f.tokens = append(f.tokens, numToken{lit: lit.String()})
			i = end + 1
			continue
		}
		name := ""
		for _, p := range numPatterns {
			if len(s)-i >= len(p) && strings.EqualFold(s[i:i+len(p)], p) {
				name = p
				break
			}
		}
		if name == "" {
			f.tokens = append(f.tokens, numToken{lit: s[i : i+1]})
			i++
			continue
		}
		text := s[i : i+len(name)]
		i += len(name)
		switch name {
		case "FM":
			f.fill = true
			continue
		case "B":
			continue // accepted and ignored
		case "9", "0":
			if f.exp {
				return nil, errTemplate("\"EEEE\" must be the last pattern used")
			}
			if f.decimal || f.shift {
				f.post++
				if name == "0" {
					f.zeroTo = f.post
				}
			} else {
				if name == "0" && !seenZero {
					seenZero, f.zeroFrom = true, f.pre
				}
				f.pre++
			}
		case ".", "D":
			if f.decimal {
				return nil, errTemplate("multiple decimal points")
			}
			if f.shift {
				return nil, errTemplate("cannot use \"V\" and decimal point together")
			}
			f.decimal, name = true, "."
		case ",", "G":
			name = ","
		case "S":
			if f.sign != 0 {
				return nil, errTemplate("cannot use \"S\" twice")
			}
			if f.pl || f.mi || f.sg || f.bracket {
				return nil, errTemplate("cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together")
			}
			f.sign = -1
			if f.pre > 0 || f.decimal {
				f.sign = 1
			}
		case "MI", "PL", "SG":
			if f.sign != 0 {
				return nil, errTemplate("cannot use \"S\" and \"%s\" together", name)
			}
			f.mi, f.pl, f.sg = f.mi || name == "MI", f.pl || name == "PL", f.sg || name == "SG"
		case "PR":
			if f.sign != 0 || f.pl || f.mi || f.sg {
				return nil, errTemplate("cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together")
			}
			f.bracket = true
			continue
		case "V":
			if f.decimal {
				return nil, errTemplate("cannot use \"V\" and decimal point together")
			}
			f.shift = true
			continue
		case "EEEE":
			f.exp = true
		case "RN":
			f.roman = true
			if text == "rn" {
				name = "rn"
			}
		case "TH":
			if text != "TH" {
				name = "th"
			}
		}
		f.tokens = append(f.tokens, numToken{name: name})
	}
	if !seenZero {
		f.zeroFrom = f.pre
		if f.shift {
			f.zeroFrom = f.pre + f.post
		}
	}
	if f.exp && (f.fill || f.sign != 0 || f.bracket || f.mi || f.pl || f.sg || f.roman || f.shift) {
		return nil, sqlerr.New(sqlerr.Syntax, "\"EEEE\" is incompatible with other formats").
			WithDetail("\"EEEE\" may only be used together with digit and decimal point patterns.")
	}
	return f, nil
}

// format writes d, with at most limit digits after the point that mean something; -1: all do.
func (f *numFormat) format(d types.Decimal, limit int) string {
	switch {
	case f.roman:
		return f.formatRoman(d)
	case f.exp:
		return f.formatExp(d)
	}
	neg := d.Sign() < 0
	digits, frac := "", ""
	post := f.post
	point := f.decimal
	switch {
	case d.IsNaN():
		digits, point = "NaN", false
	case !d.IsFinite():
		digits, point = "Infinity", false
	default:
		if f.shift {
			shift, _ := types.NewDecimalInt(10).Power(types.NewDecimalInt(int64(f.post)))
			d, post = d.Mul(shift), 0
		}
		if limit >= 0 && limit < post {
			post, point = limit, limit > 0
		}
		text := d.Abs().Round(post).String()
		digits, frac, _ = strings.Cut(text, ".")
		neg = neg && strings.Trim(text, "0.") != ""
	}
	places := f.pre
	if f.shift {
		places += f.post
	}
	zeroFrom := f.zeroFrom
	overflow := len(digits) > places
	switch {
	case overflow:
		digits, frac = strings.Repeat("#", places), strings.Repeat("#", f.post)
		point = f.decimal
	case digits == "0" && zeroFrom >= places && post > 0:
		digits = "" // .5 and not 0.5
	}
	// FM drops trailing zeros of the fraction where the template has 9s.
	keep := len(frac)
	if f.fill && !overflow {
		for keep > f.zeroTo && frac[keep-1] == '0' {
			keep--
		}
		if keep == 0 && digits == "" && places > 0 {
			digits = "0"
		}
	}
	var b strings.Builder
	placed := f.mi || f.sg // signs that stand elsewhere need none before the digits
	if f.pl && !f.mi && !f.sg {
		placed = false
	}
	sign := func() {
		if placed {
			return
		}
		placed = true
		switch {
		case f.sign < 0:
			b.WriteByte(map[bool]byte{true: '-', false: '+'}[neg])
		case f.sign > 0: // behind
		case f.bracket:
			if neg {
				b.WriteByte('<')
			} else if !f.fill {
				b.WriteByte(' ')
			}
		case neg:
			b.WriteByte('-')
		case !f.fill:
			b.WriteByte(' ')
		}
	}
	last := 0 // the token with the last digit
	for i, t := range f.tokens {
		if t.name == "9" || t.name == "0" || t.name == "." {
			last = i
		}
	}
	at, fracAt, started, inFrac := 0, 0, false, false
	for i, t := range f.tokens {
		switch t.name {
		case "":
			b.WriteString(t.lit)
		case "9", "0":
			if inFrac {
				if fracAt < keep {
					sign()
					b.WriteByte(frac[fracAt])
				}
				fracAt++
				break
			}
			lead := places - len(digits)
			switch {
			case at >= lead:
				sign()
				b.WriteByte(digits[at-lead])
				started = true
			case at >= zeroFrom:
				sign()
				b.WriteByte('0')
				started = true
			case !f.fill:
				b.WriteByte(' ')
			}
			at++
		case ".":
			inFrac = true
			if point {
				sign()
				b.WriteByte('.')
			}
		case ",":
			if started {
				b.WriteByte(',')
			} else if !f.fill {
				b.WriteByte(' ')
			}
		case "L":
			b.WriteByte(' ')
		case "MI":
			if neg {
				b.WriteByte('-')
			} else if !f.fill {
				b.WriteByte(' ')
			}
		case "PL":
			if !neg {
				b.WriteByte('+')
			} else if !f.fill {
				b.WriteByte(' ')
			}
		case "SG":
			b.WriteByte(map[bool]byte{true: '-', false: '+'}[neg])
		case "TH", "th":
			if !neg && !overflow && !f.decimal {
				s := ordinal(digits)
				if t.name == "TH" {
					s = strings.ToUpper(s)
				}
				b.WriteString(s)
			}
		}
		if i == last && (t.name == "9" || t.name == "0" || t.name == ".") {
			switch {
			case f.bracket && neg:
				b.WriteByte('>')
			case f.bracket && !f.fill:
				b.WriteByte(' ')
			case f.sign > 0:
				b.WriteByte(map[bool]byte{true: '-', false: '+'}[neg])
			}
		}
	}
	return b.String()
}

func (f *numFormat) formatExp(d types.Decimal) string {
	var b strings.Builder
	done := false
	for _, t := range f.tokens {
		switch t.name {
		case "":
			b.WriteString(t.lit)
		case "9", "0":
			if done {
				continue
			}
			done = true
			if !d.IsFinite() {
				b.WriteString(" " + strings.Repeat("#", f.pre) + "." + strings.Repeat("#", f.post+4))
				continue
			}
			b.WriteString(scientific(d, f.post))
		}
	}
	return b.String()
}

// scientific writes d with one digit before the point and post after it: " 1.50e+03".
func scientific(d types.Decimal, post int) string {
	sign := " "
	if d.Sign() < 0 {
		sign = "-"
	}
	digits, scale := d.Abs().Big().String(), d.Scale()
	exp := len(digits) - 1 - scale
	if d.Sign() == 0 {
		exp = 0
	}
	m := types.NewDecimalBig(d.Abs().Big(), 0)
	// m × 10^-(len-1) rounded to post digits.
	one := types.NewDecimalBig(m.Big(), max(len(digits)-1, 0)).Round(post)
	if one.Cmp(types.NewDecimalInt(10)) >= 0 {
		exp++
		one = types.NewDecimalBig(m.Big(), len(digits)).Round(post)
	}
	es := "+"
	if exp < 0 {
		es, exp = "-", -exp
	}
	e := strconv.Itoa(exp)
	if len(e) < 2 {
		e = "0" + e
	}
	return sign + one.String() + "e" + es + e
}

func (f *numFormat) formatRoman(d types.Decimal) string {
	s := strings.Repeat("#", 15)
	if v, err := d.Int64("integer"); err == nil && v >= 1 && v <= 3999 {
		s = roman(int(v))
	}
	for _, t := range f.tokens {
		if t.name == "rn" {
			s = strings.ToLower(s)
		}
	}
	if !f.fill {
		s = strings.Repeat(" ", max(0, 15-len(s))) + s
	}
	return s
}

func roman(n int) string {
	var b strings.Builder
	for _, r := range []struct {
		v int
		s string
	}{{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"}, {50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"}} {
		for ; n >= r.v; n -= r.v {
			b.WriteString(r.s)
		}
	}
	return b.String()
}

// ordinal is the ending of an ordinal number: st, nd, rd, th.
func ordinal(digits string) string {
	n := len(digits)
	if n == 0 || n >= 2 && digits[n-2] == '1' {
		return "th"
	}
	switch digits[n-1] {
	case '1':
		return "st"
	case '2':
		return "nd"
	case '3':
		return "rd"
	}
	return "th"
}

// parse reads a number by the template, as to_number does.
func (f *numFormat) parse(s string) (types.Decimal, error) {
	var b strings.Builder
	neg := false
	i := 0
	skip := func() {
		for i < len(s) && s[i] == ' ' {
			i++
		}
	}
	signs := func() {
		skip()
		if i < len(s) && (s[i] == '-' || s[i] == '+' || s[i] == '<') {
			neg = neg || s[i] != '+'
			i++
		}
	}
	point := false
	for _, t := range f.tokens {
		switch t.name {
		case "9", "0", ".":
			if b.Len() == 0 {
				signs()
			}
			if i >= len(s) {
				continue
			}
			switch c := s[i]; {
			case c >= '0' && c <= '9':
				if t.name == "." {
					break
				}
				b.WriteByte(c)
				i++
			case c == '.' && !point && f.decimal:
				point = true
				b.WriteByte('.')
				i++
				if t.name != "." && i < len(s) && s[i] >= '0' && s[i] <= '9' {
					b.WriteByte(s[i])
					i++
				}
			}
		case ",":
			if i < len(s) && s[i] == ',' {
				i++
			}
		case "S", "MI", "PL", "SG":
			signs()
		case "L":
			skip()
			for i < len(s) && !strings.ContainsRune("0123456789.-+", rune(s[i])) {
				i++
			}
		case "TH", "th":
			i = min(i+2, len(s))
		default:
			i = min(i+len(t.lit), len(s))
		}
	}
	if rest := strings.TrimSpace(s[min(i, len(s)):]); rest == "-" && f.sign > 0 {
		neg = true
	}
	text := b.String()
	if strings.Trim(text, ".") == "" {
		return types.Decimal{}, sqlerr.New(sqlerr.InvalidText, "invalid input syntax for type numeric: \"%s\"", " "+text)
	}
	d, err := types.ParseDecimal(strings.TrimSuffix(text, "."))
	if err != nil {
		return d, err
	}
	if neg {
		d = d.Neg()
	}
	if f.shift {
		ten, _ := types.NewDecimalInt(10).Power(types.NewDecimalInt(int64(f.post)))
		return d.Div(ten)
	}
	return d, nil
}

// formats adds to_char, to_number, to_date and to_timestamp.
func formats(r *registry) {
	number := func(d types.Decimal, format string, limit int) (string, error) {
		if format == "" {
			return "", nil
		}
		f, err := parseNumFormat(format)
		if err != nil {
			return "", err
		}
		return f.format(d, limit), nil
	}
	r.def("to_char(numeric,text) text stable", e2(func(d types.Decimal, format string) (string, error) { return number(d, format, -1) }))
	ints := e2(func(v int64, format string) (string, error) { return number(types.NewDecimalInt(v), format, -1) })
	r.defs(ints, "to_char(int4,text) text stable", "to_char(int8,text) text stable")
	floats := func(digits int) maker {
		return e2(func(v float64, format string) (string, error) {
			if format == "" {
				return "", nil
			}
			f, err := parseNumFormat(format)
			if err != nil {
				return "", err
			}
			d := types.DecimalFromFloat8(v)
			if digits == 6 {
				d = types.DecimalFromFloat4(v)
			}
			limit := digits
			if d.IsFinite() {
				limit = max(digits-len(d.Trunc(0).Abs().String()), 0)
			}
			if d.IsFinite() && !f.exp && !f.shift && !f.roman {
				// The exact binary value is rounded, halves to even.
				if d, err = types.ParseDecimal(strconv.FormatFloat(v, 'f', min(f.post, limit), 64)); err != nil {
					return "", err
				}
			}
			return f.format(d, limit), nil
		})
	}
	r.def("to_char(float4,text) text stable", floats(6))
	r.def("to_char(float8,text) text stable", floats(15))
	r.def("to_number(text,text) numeric stable", boxed(func(_ *Ctx, a []types.Datum) (types.Datum, error) {
		if a[1].Str() == "" {
			return types.Datum{}, nil
		}
		f, err := parseNumFormat(a[1].Str())
		if err != nil {
			return types.Datum{}, err
		}
		d, err := f.parse(a[0].Str())
		return types.NewDecimal(d), err
	}))
	timeFormats(r)
}
