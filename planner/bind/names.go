package bind

import (
	"streamdb/sql/chunk"
	"streamdb/sql/expr"
	"streamdb/sql/parser/ast"
	"streamdb/sql/types"
)

// Functions of the registry that stand for syntax.
const (
	fnDistinct  = "IS DISTINCT FROM"
	fnSubscript = "array_get"
	fnSlice     = "array_slice"
)

// fieldOf is a set-returning function that gives column i alone.
func fieldOf(fn *expr.TableFunc, i int) *expr.TableFunc {
	return &expr.TableFunc{
		OID: fn.OID, Name: fn.Name, Args: fn.Args,
		Columns: func(args []types.Type) types.Schema { return fn.Columns(args)[i : i+1] },
		Rows: func(ctx *expr.Ctx, args []types.Datum) (*chunk.Chunk, error) {
			c, err := fn.Rows(ctx, args)
			if err != nil {
				return nil, err
			}
			return c.Project([]int{i}), nil
		},
	}
}

// oneValue is a function that returns its one argument, of type t, as its one row.
func oneValue(name string, t types.Type) *expr.TableFunc {
	return &expr.TableFunc{
		Name: name, Args: []types.Type{t},
		Columns: func([]types.Type) types.Schema { return types.Schema{{Name: name, Type: t}} },
		Rows: func(_ *expr.Ctx, args []types.Datum) (*chunk.Chunk, error) {
			col := chunk.New(t, 1)
			col.Append(args[0])
			return &chunk.Chunk{Cols: []chunk.Column{col}, N: 1}, nil
		},
	}
}

// sideBySide is one function of the rows of several, the shorter ones padded with NULLs.
func sideBySide(fns []*expr.TableFunc, args [][]expr.Expr) *expr.TableFunc {
	if len(fns) == 1 {
		return fns[0]
	}
	out := &expr.TableFunc{Name: "ROWS FROM"}
	for i, f := range fns {
		out.Args = append(out.Args, typesOf(args[i])...)
		out.Name += " " + f.Name
	}
	var schema types.Schema
	for i, f := range fns {
		schema = append(schema, f.Columns(typesOf(args[i]))...)
	}
	out.Columns = func([]types.Type) types.Schema { return schema }
	counts := make([]int, len(fns))
	for i := range fns {
		counts[i] = len(args[i])
	}
	out.Rows = func(ctx *expr.Ctx, vals []types.Datum) (*chunk.Chunk, error) {
		all := &chunk.Chunk{}
		for i, f := range fns {
			c, err := f.Rows(ctx, vals[:counts[i]])
			if err != nil {
				return nil, err
			}
			vals = vals[counts[i]:]
			all.Cols = append(all.Cols, c.Cols...)
			all.N = max(all.N, c.N)
		}
		for i, col := range all.Cols {
			if short := all.N - col.Len(); short > 0 {
				padded := chunk.New(col.Type(), all.N)
				for k := range col.Len() {
					padded.AppendFrom(col, k)
				}
				for range short {
					padded.AppendNull()
				}
				all.Cols[i] = padded
			}
		}
		return all, nil
	}
	return out
}

// outputName is the name PostgreSQL gives a column of the select list that has no AS.
func outputName(n *ast.Node) string {
	if name, _ := figureName(n); name != "" {
		return name
	}
	return "?column?"
}

// figureName returns a name and how good it is: 2 for the name of a column or
// function, 1 for that of a type or CASE, 0 for none.
func figureName(n *ast.Node) (string, int) {
	if n == nil {
		return "", 0
	}
	switch x := n.Node.(type) {
	case *ast.Node_ColumnRef:
		names := strs(x.ColumnRef.Fields)
		if len(names) > 0 && x.ColumnRef.Fields[len(x.ColumnRef.Fields)-1].GetAStar() == nil {
			return names[len(names)-1], 2
		}
	case *ast.Node_AIndirection:
		ind := x.AIndirection.Indirection
		for i := len(ind) - 1; i >= 0; i-- {
			if s := ind[i].GetString_(); s != nil {
				return s.Sval, 2
			}
		}
		return figureName(x.AIndirection.Arg)
	case *ast.Node_FuncCall:
		return funcName(x.FuncCall.Funcname), 2
	case *ast.Node_AExpr:
		if x.AExpr.Kind == ast.A_Expr_Kind_AEXPR_NULLIF {
			return "nullif", 2
		}
	case *ast.Node_TypeCast:
		name, strength := figureName(x.TypeCast.Arg)
		if strength <= 1 && x.TypeCast.TypeName != nil {
			if names := strs(x.TypeCast.TypeName.Names); len(names) > 0 {
				return names[len(names)-1], 1
			}
		}
		return name, strength
	case *ast.Node_CollateClause:
		return figureName(x.CollateClause.Arg)
	case *ast.Node_GroupingFunc:
		return "grouping", 2
	case *ast.Node_SubLink:
		switch x.SubLink.SubLinkType {
		case ast.SubLinkType_EXISTS_SUBLINK:
			return "exists", 2
		case ast.SubLinkType_ARRAY_SUBLINK:
			return "array", 2
		case ast.SubLinkType_EXPR_SUBLINK:
			s := x.SubLink.Subselect.GetSelectStmt()
			for s != nil && s.Larg != nil {
				s = s.Larg
			}
			if s != nil && len(s.TargetList) > 0 {
				t := s.TargetList[0].GetResTarget()
				if t.GetName() != "" {
					return t.Name, 2
				}
				return outputName(t.GetVal()), 2
			}
			if s != nil && len(s.ValuesLists) > 0 {
				return "column1", 2
			}
		}
	case *ast.Node_CaseExpr:
		if name, strength := figureName(x.CaseExpr.Defresult); strength > 1 {
			return name, strength
		}
		return "case", 1
	case *ast.Node_AArrayExpr:
		return "array", 2
	case *ast.Node_RowExpr:
		return "row", 2
	case *ast.Node_CoalesceExpr:
		return "coalesce", 2
	case *ast.Node_MinMaxExpr:
		if x.MinMaxExpr.Op == ast.MinMaxOp_IS_LEAST {
			return "least", 2
		}
		return "greatest", 2
	case *ast.Node_SqlvalueFunction:
		switch x.SqlvalueFunction.Op {
		case ast.SQLValueFunctionOp_SVFOP_CURRENT_DATE:
			return "current_date", 2
		case ast.SQLValueFunctionOp_SVFOP_CURRENT_TIME, ast.SQLValueFunctionOp_SVFOP_CURRENT_TIME_N:
			return "current_time", 2
		case ast.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP, ast.SQLValueFunctionOp_SVFOP_CURRENT_TIMESTAMP_N:
			return "current_timestamp", 2
		case ast.SQLValueFunctionOp_SVFOP_LOCALTIME, ast.SQLValueFunctionOp_SVFOP_LOCALTIME_N:
			return "localtime", 2
		case ast.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP, ast.SQLValueFunctionOp_SVFOP_LOCALTIMESTAMP_N:
			return "localtimestamp", 2
		case ast.SQLValueFunctionOp_SVFOP_CURRENT_ROLE:
			return "current_role", 2
		case ast.SQLValueFunctionOp_SVFOP_CURRENT_USER:
			return "current_user", 2
		case ast.SQLValueFunctionOp_SVFOP_USER:
			return "user", 2
		case ast.SQLValueFunctionOp_SVFOP_SESSION_USER:
			return "session_user", 2
		case ast.SQLValueFunctionOp_SVFOP_CURRENT_CATALOG:
			return "current_catalog", 2
		case ast.SQLValueFunctionOp_SVFOP_CURRENT_SCHEMA:
			return "current_schema", 2
		}
	}
	return "", 0
}
