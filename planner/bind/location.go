package bind

import (
	"math"
	"strconv"

	"streamdb/sql/parser/ast"
)

// location is where the text of an expression begins, -1 if unknown.
func location(n *ast.Node) int {
	if n == nil {
		return -1
	}
	switch x := n.Node.(type) {
	case *ast.Node_AConst:
		return int(x.AConst.Location)
	case *ast.Node_ColumnRef:
		return int(x.ColumnRef.Location)
	case *ast.Node_ParamRef:
		return int(x.ParamRef.Location)
	case *ast.Node_AExpr:
		return leftmost(location(x.AExpr.Lexpr), int(x.AExpr.Location))
	case *ast.Node_BoolExpr:
		l := int(x.BoolExpr.Location)
		if x.BoolExpr.Boolop != ast.BoolExprType_NOT_EXPR {
			l = leftmost(location(x.BoolExpr.Args[0]), l)
		}
		return l
	case *ast.Node_FuncCall:
		l := int(x.FuncCall.Location)
		for _, a := range x.FuncCall.Args {
			l = leftmost(l, location(a))
		}
		return l
	case *ast.Node_NamedArgExpr:
		return leftmost(int(x.NamedArgExpr.Location), location(x.NamedArgExpr.Arg))
	case *ast.Node_TypeCast:
		if c := x.TypeCast.Arg.GetAConst(); c.GetSval() != nil { // a literal stays where it is, whatever type it has
			return int(c.Location)
		}
		return leftmost(location(x.TypeCast.Arg), leftmost(int(x.TypeCast.TypeName.GetLocation()), int(x.TypeCast.Location)))
	case *ast.Node_NullTest:
		return leftmost(location(x.NullTest.Arg), int(x.NullTest.Location))
	case *ast.Node_BooleanTest:
		return leftmost(location(x.BooleanTest.Arg), int(x.BooleanTest.Location))
	case *ast.Node_CaseExpr:
		return int(x.CaseExpr.Location)
	case *ast.Node_CaseWhen:
		return int(x.CaseWhen.Location)
	case *ast.Node_CoalesceExpr:
		return int(x.CoalesceExpr.Location)
	case *ast.Node_MinMaxExpr:
		return int(x.MinMaxExpr.Location)
	case *ast.Node_SqlvalueFunction:
		return int(x.SqlvalueFunction.Location)
	case *ast.Node_SubLink:
		return leftmost(location(x.SubLink.Testexpr), int(x.SubLink.Location))
	case *ast.Node_AArrayExpr:
		return int(x.AArrayExpr.Location)
	case *ast.Node_AIndirection:
		return location(x.AIndirection.Arg)
	case *ast.Node_CollateClause:
		return leftmost(location(x.CollateClause.Arg), int(x.CollateClause.Location))
	case *ast.Node_RowExpr:
		return int(x.RowExpr.Location)
	case *ast.Node_SetToDefault:
		return int(x.SetToDefault.Location)
	case *ast.Node_ResTarget:
		return int(x.ResTarget.Location)
	case *ast.Node_SortBy:
		return location(x.SortBy.Node)
	case *ast.Node_GroupingSet:
		return int(x.GroupingSet.Location)
	case *ast.Node_RangeVar:
		return int(x.RangeVar.Location)
	case *ast.Node_TypeName:
		return int(x.TypeName.Location)
	}
	return -1
}

func leftmost(a, b int) int {
	switch {
	case a < 0:
		return b
	case b < 0:
		return a
	}
	return min(a, b)
}

// constInt is the value of an integer literal, as ORDER BY 1 has it.
func constInt(n *ast.Node) (int, bool) {
	c := n.GetAConst()
	if c == nil || c.Isnull {
		return 0, false
	}
	switch v := c.Val.(type) {
	case *ast.A_Const_Ival:
		return int(v.Ival.GetIval()), true
	case nil:
		return 0, true
	case *ast.A_Const_Fval:
		if _, err := strconv.ParseInt(v.Fval.Fval, 10, 64); err == nil {
			return math.MaxInt32, true
		}
	}
	return 0, false
}
