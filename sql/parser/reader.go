package parser

import (
	"slices"
	"strings"

	"streamdb/sql/sqlerr"
)

// A reader walks the tokens of one extension statement. The first thing that does not fit is kept in err, and everything after
// it yields zero values, so that a statement's function reads like its syntax and checks once, by fail or finish.
type reader struct {
	*parser
	span
	i   int
	err error
}

func (p *parser) reader(s span) *reader { return &reader{parser: p, span: s, i: s.lo} }

// pos is where the statement begins.
func (r *reader) pos() int { return int(r.toks[r.lo].pos) }

// here is the offset of the next token.
func (r *reader) here() int { return int(r.toks[r.i].pos) }

// next says whether the given words come next.
func (r *reader) next(words ...string) bool {
	return r.err == nil && r.i+len(words) <= r.hi && r.seq(r.i, words...)
}

// accept takes the given words if they come next.
func (r *reader) accept(words ...string) bool {
	if !r.next(words...) {
		return false
	}
	r.i += len(words)
	return true
}

// expect takes the given words or fails at the first that is not there.
func (r *reader) expect(words ...string) {
	for _, w := range words {
		if !r.accept(w) {
			r.fail()
		}
	}
}

// fail complains about the next token.
func (r *reader) fail() {
	if r.err == nil {
		r.err = r.unexpected(min(r.i, r.hi))
	}
}

func (r *reader) failWith(err error) {
	if r.err == nil {
		r.err = err
	}
}

// done says that nothing is left, or nothing can be read.
func (r *reader) done() bool { return r.err != nil || r.i >= r.hi }

// finish fails if anything is left.
func (r *reader) finish() error {
	if r.err == nil && r.i < r.hi {
		r.fail()
	}
	return r.err
}

// ident takes a name's part.
func (r *reader) ident() string {
	if r.done() || !r.named(r.i) {
		r.fail()
		return ""
	}
	s, err := r.parser.ident(r.i)
	if err != nil {
		r.failWith(err)
	}
	r.i++
	return s
}

// label is ident for places where every keyword will do.
func (r *reader) label() string {
	if r.done() || r.toks[r.i].kind != word && r.toks[r.i].kind != quoted {
		r.fail()
		return ""
	}
	s, err := r.parser.ident(r.i)
	if err != nil {
		r.failWith(err)
	}
	r.i++
	return s
}

// name takes [[catalog.]schema.]name.
func (r *reader) name() Name {
	if r.done() {
		r.fail()
		return Name{}
	}
	n := Name{Pos: r.here(), Name: r.ident()}
	for k := 0; k < 2 && r.accept("."); k++ {
		n.Catalog, n.Schema, n.Name = n.Schema, n.Name, r.label()
	}
	return n
}

// names takes a parenthesised list of plain names.
func (r *reader) names() []string {
	r.expect("(")
	out := []string{r.ident()}
	for r.accept(",") {
		out = append(out, r.ident())
	}
	r.expect(")")
	return out
}

// literal takes a string.
func (r *reader) literal() string {
	if r.done() {
		r.fail()
		return ""
	}
	s, err := r.parser.literal(r.i)
	if err != nil {
		r.failWith(err)
	}
	r.i++
	return s
}

func (r *reader) kindIs(k kind) bool { return !r.done() && r.toks[r.i].kind == k }

// kind takes the words for one of the given kinds of thing; "" if none is there.
func (r *reader) kind(kinds ...ObjectKind) ObjectKind {
	for _, k := range kinds {
		if r.accept(strings.Fields(strings.ToLower(string(k)))...) {
			return k
		}
	}
	return ""
}

// options takes a parenthesised list of options.
func (r *reader) options() []Option {
	var out []Option
	r.optionList(func(o Option) { out = append(out, o) }, nil)
	return out
}

// optionList takes a list of options and gives each to add, but for the backfill order, which it gives to order if that is not nil.
func (r *reader) optionList(add func(Option), order func(*BackfillOrder)) {
	r.expect("(")
	if r.accept(")") {
		return
	}
	var seen []string
	for r.err == nil {
		o := Option{Pos: r.here(), Kind: Flag, Value: "true"}
		o.ValuePos = o.Pos
		o.Name = r.optionName()
		if r.err == nil && slices.Contains(seen, o.Name) {
			r.failWith(sqlerr.New(sqlerr.Syntax, `option "%s" is given twice`, o.Name).At(o.Pos))
		}
		seen = append(seen, o.Name)
		if r.accept("=") {
			if o.Name == "backfill_order" && order != nil {
				order(r.backfillOrder())
			} else {
				r.value(&o)
				add(o)
			}
		} else {
			add(o)
		}
		if !r.accept(",") {
			break
		}
	}
	r.expect(")")
}

// optionName takes a name of words, dots and dashes, or a quoted one.
func (r *reader) optionName() string {
	var b strings.Builder
	if r.kindIs(str) {
		return r.literal()
	}
	for first := true; !r.done() && (first || r.toks[r.i].pos == r.toks[r.i-1].end); first = false {
		switch t := r.toks[r.i]; {
		case t.kind == word || t.kind == quoted:
			b.WriteString(r.label())
			continue
		case t.kind == number && !first, !first && (r.is(r.i, ".") || r.is(r.i, "-")):
			b.WriteString(r.src(r.i))
			r.i++
			continue
		}
		break
	}
	if b.Len() == 0 {
		r.fail()
	}
	return b.String()
}

// value takes an option's value.
func (r *reader) value(o *Option) {
	if r.done() {
		r.fail()
		return
	}
	o.ValuePos = r.here()
	switch {
	case r.kindIs(str):
		o.Kind, o.Value = String, r.literal()
	case r.kindIs(number), r.next("-"), r.next("+"):
		o.Kind, o.Value = Number, ""
		if r.accept("-") {
			o.Value = "-"
		} else {
			r.accept("+")
		}
		if !r.kindIs(number) {
			r.fail()
			return
		}
		o.Value += strings.ReplaceAll(r.src(r.i), "_", "")
		r.i++
	case r.kindIs(word) && r.accept("secret"):
		n := r.name()
		o.Kind, o.Value = SecretRef, n.Name
		if n.Schema != "" {
			o.Value = n.Schema + "." + n.Name
		}
		if r.accept("as") && !r.accept("file") && !r.accept("text") {
			r.fail()
		}
	case r.kindIs(word), r.kindIs(quoted):
		o.Kind, o.Value = Word, r.label()
		for r.accept(".") {
			o.Value += "." + r.label()
		}
	default:
		r.fail()
	}
}

func (r *reader) backfillOrder() *BackfillOrder {
	o := &BackfillOrder{Pos: r.here()}
	if r.kindIs(str) {
		o.Kind = strings.ToLower(r.literal())
	} else {
		o.Kind = r.label()
	}
	switch o.Kind {
	case "none", "default", "auto":
	case "fixed":
		r.expect("(")
		for r.err == nil && !r.next(")") {
			first := r.name()
			r.expect("->")
			o.Arcs = append(o.Arcs, BackfillArc{first, r.name()})
			// a -> b -> c is a -> b, b -> c.
			for r.accept("->") {
				o.Arcs = append(o.Arcs, BackfillArc{o.Arcs[len(o.Arcs)-1].Then, r.name()})
			}
			if !r.accept(",") {
				break
			}
		}
		r.expect(")")
	default:
		if r.err == nil {
			r.err = sqlerr.New(sqlerr.InvalidParameter, `invalid value for backfill_order: "%s"`, o.Kind).At(o.Pos).
				WithHint("Use NONE, DEFAULT, AUTO or FIXED (first -> then, …).")
		}
	}
	return o
}

// with takes WITH (…) if it comes next.
func (r *reader) with() []Option {
	if !r.next("with", "(") {
		return nil
	}
	r.i++
	return r.options()
}

// ifNotExists takes IF NOT EXISTS if it comes next.
func (r *reader) ifNotExists() bool { return r.accept("if", "not", "exists") }

// group returns the span inside of the parentheses that come next and takes them.
func (r *reader) group() span {
	r.expect("(")
	s := span{r.i, r.i}
	for depth := 1; r.err == nil; r.i++ {
		if r.i >= r.hi {
			r.fail()
			break
		}
		if depth += r.nesting(r.i); depth == 0 {
			s.hi = r.i
			r.i++
			break
		}
	}
	return s
}

// format takes FORMAT … ENCODE … (…) if it comes next.
func (r *reader) format() *Format {
	if !r.next("format") {
		return nil
	}
	f := &Format{Pos: r.here()}
	r.i++
	f.Format = r.label()
	r.expect("encode")
	f.Encode = r.label()
	if r.next("(") {
		f.Options = r.options()
	}
	if r.accept("key", "encode") {
		f.KeyEncode = r.label()
		if r.next("(") {
			f.Options = append(f.Options, r.options()...)
		}
	}
	return f
}

// include takes one INCLUDE, which comes next.
func (r *reader) include() Include {
	inc := Include{Pos: r.here()}
	r.expect("include")
	inc.Kind = r.label()
	if r.kindIs(str) {
		inc.Inner = r.literal()
		from := r.i
		for !r.done() && !r.next("as") && !r.includeEnds() {
			r.i++
		}
		if r.err == nil && r.i > from {
			t, err := r.typeRef(span{from, r.i})
			if err != nil {
				r.failWith(err)
			}
			inc.InnerType = t
		}
	}
	if r.accept("as") {
		inc.As = r.ident()
	}
	return inc
}

func (r *reader) includeEnds() bool {
	return r.next("include") || r.next("with") || r.next("format") || r.next("on", "conflict") || r.next("append", "only") || r.next(",")
}
