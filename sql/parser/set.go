package parser

import (
	"strconv"
	"strings"

	"streamdb/sql/parser/ast"
	"streamdb/sql/sqlerr"
)

// SetValues returns the values of SET name {= | TO} value, … as text, in the user's case; none for SET … TO DEFAULT and RESET.
// SET TIME ZONE has the name timezone; an INTERVAL's value is the text in its quotes.
func SetValues(n *ast.VariableSetStmt) ([]string, error) {
	if n.Kind != ast.VariableSetKind_VAR_SET_VALUE {
		return nil, nil
	}
	out := make([]string, 0, len(n.Args))
	for _, a := range n.Args {
		if tc := a.GetTypeCast(); tc != nil {
			a = tc.Arg
		}
		v, ok := constant(a.GetAConst())
		if !ok {
			return nil, sqlerr.Unsupported("this value for %s", QuoteIdent(n.Name))
		}
		out = append(out, v)
	}
	return out, nil
}

// constant writes a constant as text.
func constant(c *ast.A_Const) (string, bool) {
	switch v := c.GetVal().(type) {
	case *ast.A_Const_Ival:
		return strconv.Itoa(int(v.Ival.GetIval())), true
	case *ast.A_Const_Fval:
		return v.Fval.GetFval(), true
	case *ast.A_Const_Sval:
		return v.Sval.GetSval(), true
	case *ast.A_Const_Boolval:
		return strconv.FormatBool(v.Boolval.GetBoolval()), true
	case *ast.A_Const_Bsval:
		return v.Bsval.GetBsval(), true
	}
	return "", false
}

// Bool reads an option's value as PostgreSQL reads a boolean: true, on, yes, 1 and their beginnings.
func (o *Option) Bool() (bool, error) {
	v := strings.ToLower(o.Value)
	switch {
	case v == "":
	case strings.HasPrefix("true", v), v == "on", strings.HasPrefix("yes", v), v == "1":
		return true, nil
	case strings.HasPrefix("false", v), v == "off" || v == "of", strings.HasPrefix("no", v), v == "0":
		return false, nil
	}
	return false, sqlerr.New(sqlerr.InvalidParameter, `%s requires a Boolean value`, o.Name).At(o.ValuePos)
}
