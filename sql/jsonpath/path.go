// Package jsonpath reads and evaluates SQL/JSON path expressions as PostgreSQL does.
//
// The one idea: a path is a tree of items. An item takes one JSON value and hands on
// any number; a predicate of a filter takes values and says true, false or unknown.
package jsonpath

import (
	"strconv"

	"streamdb/sql/types"
)

// A Path is a compiled path. It is immutable and may be shared.
type Path struct {
	strict bool
	root   *item
}

// An op is what an item does.
type op uint8

const (
	opNull op = iota
	opString
	opNumber
	opBool
	opVariable // $name
	opRoot     // $
	opCurrent  // @
	opLast     // last
	opKey      // .name
	opAnyKey   // .*
	opAnyArray // [*]
	opIndex    // [from to to, …]
	opAny      // .**{first to last}
	opMethod   // .name()
	opFilter   // ?(left)
	opAdd
	opSub
	opMul
	opDiv
	opMod
	opPlus
	opMinus
	// Predicates.
	opOr
	opAnd
	opNot
	opUnknown // (left) is unknown
	opExists
	opEq
	opNe
	opLt
	opGt
	opLe
	opGe
	opStarts
	opLike
)

// An item is one step of a path; next is the accessor that follows it.
type item struct {
	op          op
	str         string // of strings, keys, variables, methods; the pattern of like_regex
	flags       string // of like_regex
	num         types.Decimal
	yes         bool
	left, right *item
	subs        [][2]*item // of opIndex; the second is nil without "to"
	first, last uint32     // of opAny; unbounded: noLimit
	next        *item
}

const noLimit = ^uint32(0)

var opNames = map[op]string{opAdd: "+", opSub: "-", opMul: "*", opDiv: "/", opMod: "%", opPlus: "+", opMinus: "-", opOr: "||", opAnd: "&&", opEq: "==",
	opNe: "!=", opLt: "<", opGt: ">", opLe: "<=", opGe: ">="}

func (o op) predicate() bool { return o >= opOr }

// predicate reports whether it gives a truth value and nothing more is made of that.
func (it *item) predicate() bool { return it.op.predicate() && it.next == nil }

func (o op) priority() int {
	switch o {
	case opOr:
		return 0
	case opAnd:
		return 1
	case opEq, opNe, opLt, opGt, opLe, opGe, opStarts:
		return 2
	case opAdd, opSub:
		return 3
	case opMul, opDiv, opMod:
		return 4
	case opPlus, opMinus:
		return 5
	}
	return 6
}

// String is the path in PostgreSQL's output form.
func (p *Path) String() string {
	var dst []byte
	if p.strict {
		dst = append(dst, "strict "...)
	}
	return string(p.root.print(dst, false, true))
}

func (it *item) print(dst []byte, inKey, brackets bool) []byte {
	side := func(x *item) { dst = x.print(dst, false, x.op.priority() <= it.op.priority()) }
	dot := func() {
		if inKey {
			dst = append(dst, '.')
		}
	}
	switch it.op {
	case opNull:
		dst = append(dst, "null"...)
	case opString:
		dst = types.AppendJSONString(dst, it.str)
	case opNumber:
		dst = it.num.AppendText(dst)
	case opBool:
		dst = strconv.AppendBool(dst, it.yes)
	case opVariable:
		dst = types.AppendJSONString(append(dst, '$'), it.str)
	case opRoot:
		dst = append(dst, '$')
	case opCurrent:
		dst = append(dst, '@')
	case opLast:
		dst = append(dst, "last"...)
	case opKey:
		dot()
		dst = types.AppendJSONString(dst, it.str)
	case opAnyKey:
		dot()
		dst = append(dst, '*')
	case opAnyArray:
		dst = append(dst, "[*]"...)
	case opIndex:
		dst = append(dst, '[')
		for i, s := range it.subs {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = s[0].print(dst, false, false)
			if s[1] != nil {
				dst = s[1].print(append(dst, " to "...), false, false)
			}
		}
		dst = append(dst, ']')
	case opAny:
		dot()
		dst = append(dst, "**"...)
		level := func(n uint32) {
			if n == noLimit {
				dst = append(dst, "last"...)
			} else {
				dst = strconv.AppendUint(dst, uint64(n), 10)
			}
		}
		if it.first != 0 || it.last != noLimit {
			dst = append(dst, '{')
			level(it.first)
			if it.first != it.last {
				dst = append(dst, " to "...)
				level(it.last)
			}
			dst = append(dst, '}')
		}
	case opMethod:
		dst = append(append(append(dst, '.'), it.str...), '(')
		if it.left != nil {
			dst = it.left.print(dst, false, false)
		}
		dst = append(dst, ')')
	case opFilter:
		dst = append(it.left.print(append(dst, "?("...), false, false), ')')
	case opPlus, opMinus:
		if brackets {
			dst = append(dst, '(')
		}
		dst = append(dst, opNames[it.op]...)
		side(it.left)
		if brackets {
			dst = append(dst, ')')
		}
	case opNot:
		dst = append(it.left.print(append(dst, "!("...), false, false), ')')
	case opUnknown:
		dst = append(it.left.print(append(dst, '('), false, false), ") is unknown"...)
	case opExists:
		dst = append(it.left.print(append(dst, "exists ("...), false, false), ')')
	case opLike:
		if brackets {
			dst = append(dst, '(')
		}
		side(it.left)
		dst = types.AppendJSONString(append(dst, " like_regex "...), it.str)
		if it.flags != "" {
			dst = append(append(append(dst, ` flag "`...), it.flags...), '"')
		}
		if brackets {
			dst = append(dst, ')')
		}
	default:
		if brackets {
			dst = append(dst, '(')
		}
		side(it.left)
		if it.op == opStarts {
			dst = append(dst, " starts with "...)
		} else {
			dst = append(append(append(dst, ' '), opNames[it.op]...), ' ')
		}
		side(it.right)
		if brackets {
			dst = append(dst, ')')
		}
	}
	if it.next != nil {
		dst = it.next.print(dst, true, true)
	}
	return dst
}
