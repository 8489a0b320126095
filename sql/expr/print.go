package expr

import (
	"fmt"
	"strconv"
	"strings"

	"streamdb/sql/types"
)

// String writes e as EXPLAIN shows it, in RisingWave's manner: (a.b > 5:Int32).
func String(e Expr) string {
	var b strings.Builder
	explain(&b, e)
	return b.String()
}

// Strings is String of each, joined by commas.
func Strings(es []Expr) string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = String(e)
	}
	return strings.Join(out, ", ")
}

func explain(b *strings.Builder, e Expr) {
	list := func(name string, es ...Expr) {
		b.WriteString(name + "(")
		for i, a := range es {
			if i > 0 {
				b.WriteString(", ")
			}
			explain(b, a)
		}
		b.WriteByte(')')
	}
	infix := func(op string, es ...Expr) {
		b.WriteByte('(')
		for i, a := range es {
			if i > 0 {
				b.WriteString(" " + op + " ")
			}
			explain(b, a)
		}
		b.WriteByte(')')
	}
	switch e := e.(type) {
	case nil:
	case *ColRef:
		b.WriteString(columnName(e.Name, e.Index))
	case *Const:
		switch {
		case e.Val.IsNull():
			b.WriteString("null")
		case quoted(e.Typ):
			b.WriteString(quoteLiteral(e.Val.Text(e.Typ)))
		case e.Typ.OID == types.OIDBool:
			b.WriteString(strconv.FormatBool(e.Val.Bool()))
		default:
			b.WriteString(e.Val.Text(e.Typ))
		}
		b.WriteString(":" + typeName(e.Typ))
	case *Param:
		fmt.Fprintf(b, "$%d", e.Index)
	case *OuterRef:
		b.WriteString("outer(" + columnName(e.Name, e.Index) + ")")
	case *Call:
		switch {
		case e.Fn.Operator && len(e.Args) == 2:
			infix(e.Fn.Name, e.Args...)
		case e.Fn.Operator:
			b.WriteString("(" + e.Fn.Name)
			explain(b, e.Args[0])
			b.WriteByte(')')
		default:
			list(camel(e.Fn.Name), e.Args...)
		}
	case *Cast:
		explain(b, e.Arg)
		b.WriteString("::" + typeName(e.Typ))
	case *Logic:
		if e.Or {
			infix("OR", e.Args...)
		} else {
			infix("AND", e.Args...)
		}
	case *Not:
		list("Not", e.Arg)
	case *IsNull:
		if e.Negate {
			list("IsNotNull", e.Arg)
		} else {
			list("IsNull", e.Arg)
		}
	case *Case:
		list("Case", children(e)...)
	case *Coalesce:
		list("Coalesce", e.Args...)
	case *InList:
		if e.Negate {
			b.WriteString("Not(")
		}
		list("In", children(e)...)
		if e.Negate {
			b.WriteByte(')')
		}
	case *ArrayExpr:
		list("ARRAY", e.Elems...)
	case *Quantified:
		b.WriteByte('(')
		explain(b, e.Left)
		b.WriteString(" " + e.Op.Name + " ")
		if e.All {
			list("All", e.Array)
		} else {
			list("Some", e.Array)
		}
		b.WriteByte(')')
	case *Subquery:
		kind := [...]string{"Scalar", "Existential", "QuantifiedAny", "QuantifiedAll", "Array"}[e.Kind]
		if e.Correlated {
			kind = "Correlated" + kind
		}
		list(kind+"Subquery", e.Left...)
	default:
		fmt.Fprintf(b, "%T", e)
	}
}

func columnName(name string, index int) string {
	if name == "" {
		return "$" + strconv.Itoa(index)
	}
	return name
}

// quoted reports whether literals of t are written in quotes.
func quoted(t types.Type) bool {
	switch t.Kind() {
	case types.KindBool, types.KindFloat, types.KindDecimal:
		return false
	case types.KindInt:
		switch t.OID {
		case types.OIDDate, types.OIDTime, types.OIDTimestamp, types.OIDTimestamptz, types.OIDTid:
			return true
		}
		return false
	}
	return true
}

func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// camel writes split_part as SplitPart.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

// typeName is RisingWave's name of a type in plans.
func typeName(t types.Type) string {
	if t.Elem != nil {
		return "List(" + typeName(*t.Elem) + ")"
	}
	switch t.OID {
	case types.OIDBool:
		return "Boolean"
	case types.OIDInt2:
		return "Int16"
	case types.OIDInt4:
		return "Int32"
	case types.OIDInt8:
		return "Int64"
	case types.OIDFloat4:
		return "Float32"
	case types.OIDFloat8:
		return "Float64"
	case types.OIDNumeric:
		return "Decimal"
	case types.OIDText, types.OIDVarchar, types.OIDBpchar:
		return "Varchar"
	case types.OIDBytea:
		return "Bytea"
	case types.OIDDate:
		return "Date"
	case types.OIDTime:
		return "Time"
	case types.OIDTimestamp:
		return "Timestamp"
	case types.OIDTimestamptz:
		return "Timestamptz"
	case types.OIDInterval:
		return "Interval"
	case types.OIDJSONB:
		return "Jsonb"
	}
	return camel(types.FormatType(t))
}

// AggString writes an aggregate call as EXPLAIN shows it: sum(sales.amount), count, max(x) filter(y).
func AggString(a Agg, input types.Schema) string {
	name := func(i int) string {
		if i < len(input) && input[i].Name != "" {
			return input[i].Name
		}
		return "$" + strconv.Itoa(i)
	}
	var b strings.Builder
	b.WriteString(a.Fn.Name)
	if len(a.Args) > 0 {
		b.WriteByte('(')
		if a.Distinct {
			b.WriteString("distinct ")
		}
		for i, c := range a.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(name(c))
		}
		for i, o := range a.Order {
			if i == 0 {
				b.WriteString(" order_by(")
			} else {
				b.WriteString(", ")
			}
			b.WriteString(name(o.Col))
			if o.Desc {
				b.WriteString(" DESC")
			} else {
				b.WriteString(" ASC")
			}
		}
		if len(a.Order) > 0 {
			b.WriteByte(')')
		}
		b.WriteByte(')')
	}
	if a.Filter >= 0 {
		b.WriteString(" filter(" + name(a.Filter) + ")")
	}
	return b.String()
}

// SQL writes e as SQL that reads back as e, as pg_get_expr does.
func SQL(e Expr) string {
	var b strings.Builder
	writeSQL(&b, e)
	return b.String()
}

func writeSQL(b *strings.Builder, e Expr) {
	list := func(es []Expr) {
		for i, a := range es {
			if i > 0 {
				b.WriteString(", ")
			}
			writeSQL(b, a)
		}
	}
	switch e := e.(type) {
	case nil:
	case *ColRef:
		name := e.Name
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			name = name[i+1:]
		}
		b.WriteString(quoteIdent(columnName(name, e.Index)))
	case *Const:
		switch {
		case e.Val.IsNull():
			b.WriteString("NULL")
		case e.Typ.OID == types.OIDBool:
			b.WriteString(strconv.FormatBool(e.Val.Bool()))
			return
		case e.Typ.OID == types.OIDInt4 && e.Val.Int() >= 0, e.Typ.OID == types.OIDNumeric && e.Val.Decimal().Sign() >= 0 && e.Val.Decimal().Scale() > 0:
			b.WriteString(e.Val.Text(e.Typ))
			return
		default:
			b.WriteString(quoteLiteral(e.Val.Text(e.Typ)))
		}
		if e.Typ.OID != types.OIDUnknown {
			b.WriteString("::" + types.FormatType(e.Typ))
		}
	case *Param:
		fmt.Fprintf(b, "$%d", e.Index)
	case *OuterRef:
		b.WriteString(e.Name)
	case *Call:
		switch {
		case e.Fn.Operator && len(e.Args) == 2:
			b.WriteByte('(')
			writeSQL(b, e.Args[0])
			b.WriteString(" " + e.Fn.Name + " ")
			writeSQL(b, e.Args[1])
			b.WriteByte(')')
		case e.Fn.Operator:
			b.WriteString("(" + e.Fn.Name + " ")
			writeSQL(b, e.Args[0])
			b.WriteByte(')')
		case isTest(e.Fn.Name):
			b.WriteByte('(')
			writeSQL(b, e.Args[0])
			b.WriteString(" " + strings.ToUpper(strings.ReplaceAll(e.Fn.Name, "_", " ")) + ")")
		default:
			b.WriteString(quoteIdent(e.Fn.Name) + "(")
			list(e.Args)
			b.WriteByte(')')
		}
	case *Cast:
		b.WriteByte('(')
		writeSQL(b, e.Arg)
		b.WriteString(")::" + types.FormatType(e.Typ))
	case *Logic:
		op := " AND "
		if e.Or {
			op = " OR "
		}
		b.WriteByte('(')
		for i, a := range e.Args {
			if i > 0 {
				b.WriteString(op)
			}
			writeSQL(b, a)
		}
		b.WriteByte(')')
	case *Not:
		b.WriteString("(NOT ")
		writeSQL(b, e.Arg)
		b.WriteByte(')')
	case *IsNull:
		b.WriteByte('(')
		writeSQL(b, e.Arg)
		if e.Negate {
			b.WriteString(" IS NOT NULL)")
		} else {
			b.WriteString(" IS NULL)")
		}
	case *Case:
		b.WriteString("CASE")
		for _, w := range e.Whens {
			b.WriteString(" WHEN ")
			writeSQL(b, w.Cond)
			b.WriteString(" THEN ")
			writeSQL(b, w.Then)
		}
		if e.Else != nil {
			b.WriteString(" ELSE ")
			writeSQL(b, e.Else)
		}
		b.WriteString(" END")
	case *Coalesce:
		b.WriteString("COALESCE(")
		list(e.Args)
		b.WriteByte(')')
	case *InList:
		b.WriteByte('(')
		writeSQL(b, e.Arg)
		if e.Negate {
			b.WriteString(" NOT")
		}
		b.WriteString(" IN (")
		list(e.List)
		b.WriteString("))")
	case *ArrayExpr:
		b.WriteString("ARRAY[")
		list(e.Elems)
		b.WriteString("]")
		if len(e.Elems) == 0 {
			b.WriteString("::" + types.FormatType(e.Typ))
		}
	case *Quantified:
		b.WriteByte('(')
		writeSQL(b, e.Left)
		b.WriteString(" " + e.Op.Name)
		if e.All {
			b.WriteString(" ALL (")
		} else {
			b.WriteString(" ANY (")
		}
		writeSQL(b, e.Array)
		b.WriteString("))")
	case *Subquery:
		b.WriteString("(SELECT ...)") // the plan is not ours to print
	default:
		fmt.Fprintf(b, "%T", e)
	}
}

func isTest(name string) bool {
	switch name {
	case "is_true", "is_not_true", "is_false", "is_not_false":
		return true
	}
	return false
}
