// Package ast names the nodes of PostgreSQL's syntax tree. They are aliases of the external parser's message types, which are the
// same whether its C code is linked or its WebAssembly build is used, so what reads a tree need not know which one made it.
//
// Every Location in a tree that sql/parser returns is a byte offset into the text it was given; -1 is unknown.
package ast

//go:generate go run gen.go
