package parser

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"streamdb/sql/parser/ast"
)

// grammarVersion is the PostgreSQL release whose grammar is linked; the writer wants to see it in a tree.
const grammarVersion = 170007

// Deparse writes a statement's tree as one line of SQL. The tree does not hold our own clauses: a statement whose Clauses are
// not empty has its text in [DefiningQuery] instead.
func Deparse(n *ast.Node) (string, error) {
	s, err := deparse(&ast.ParseResult{Version: grammarVersion, Stmts: []*ast.RawStmt{{Stmt: n}}})
	if err != nil {
		return "", fmt.Errorf("writing a syntax tree as text: %w", err)
	}
	return s, nil
}

// DeparseExpr writes an expression's tree as SQL.
func DeparseExpr(n *ast.Node) (string, error) {
	target := &ast.Node{Node: &ast.Node_ResTarget{ResTarget: &ast.ResTarget{Val: n}}}
	s, err := Deparse(&ast.Node{Node: &ast.Node_SelectStmt{SelectStmt: &ast.SelectStmt{
		TargetList:  []*ast.Node{target},
		LimitOption: ast.LimitOption_LIMIT_OPTION_DEFAULT,
		Op:          ast.SetOperation_SETOP_NONE,
	}}})
	return strings.TrimPrefix(s, "SELECT "), err
}

// DeparseType writes a type's name as SQL.
func DeparseType(t *ast.TypeName) (string, error) {
	null := &ast.Node{Node: &ast.Node_AConst{AConst: &ast.A_Const{Isnull: true}}}
	s, err := DeparseExpr(&ast.Node{Node: &ast.Node_TypeCast{TypeCast: &ast.TypeCast{Arg: null, TypeName: t}}})
	return strings.TrimPrefix(s, "NULL::"), err
}

// DefiningQuery returns the text of the query in CREATE VIEW, CREATE MATERIALIZED VIEW, CREATE TABLE … AS, CREATE SINK … AS and
// ALTER MATERIALIZED VIEW … AS, as the user wrote it and with our clauses, and its offset in the whole text; "" for other statements.
func DefiningQuery(s *Statement) (text string, offset int) {
	options := false // WITH DATA and WITH CHECK OPTION may follow
	switch e := s.Ext.(type) {
	case nil:
		switch s.Node.GetNode().(type) {
		case *ast.Node_ViewStmt, *ast.Node_CreateTableAsStmt:
			options = true
		default:
			return "", 0
		}
	case *CreateTable:
		if e.As == nil {
			return "", 0
		}
		options = true
	case *CreateMaterializedView:
		options = true
	case *CreateSink:
		if e.Query == nil {
			return "", 0
		}
	case *AlterQuery:
	default:
		return "", 0
	}
	p, err := newParser(s.Text)
	if err != nil {
		return "", 0
	}
	r := p.reader(p.all())
	for !r.done() && !r.accept("as") {
		r.skip()
	}
	lo, hi := r.i, r.hi
	if options {
		for _, tail := range [][]string{{"with", "no", "data"}, {"with", "data"}, {"with", "check", "option"}, {"with", "cascaded", "check", "option"},
			{"with", "local", "check", "option"}} {
			if n := len(tail); hi-n > lo && p.seq(hi-n, tail...) {
				hi -= n
				break
			}
		}
	} else {
		for !r.done() && !r.next("with", "(") && !(r.next("format") && r.is(r.i+2, "encode")) {
			r.skip()
		}
		hi = r.i
	}
	if lo >= hi {
		return "", 0
	}
	from, to := int(p.toks[lo].pos), int(p.toks[hi-1].end)
	return s.Text[from:to], s.Offset + from
}

// Equal says whether two trees are the same but for their locations.
func Equal(a, b *ast.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	a, b = proto.CloneOf(a), proto.CloneOf(b)
	clearLocations(a.ProtoReflect())
	clearLocations(b.ProtoReflect())
	return proto.Equal(a, b)
}
