// Package parser turns SQL text into syntax trees. The idea: PostgreSQL text is parsed by PostgreSQL's own grammar, and the
// streaming dialect is a thin layer over the text's tokens, which hands every embedded query, expression and type back to that
// grammar.
//
// Two things the grammar does not know are told apart. A statement of our own (CREATE SOURCE, SHOW, FLUSH, …) is read by recursive
// descent from the tokens into a plain struct, an [Ext]. A clause of our own inside PostgreSQL's text (EMIT ON WINDOW CLOSE,
// struct<…>, …) is overwritten by spaces, or by something of equal length that the grammar takes, before the grammar sees it, and is
// noted in [Clauses] under the byte offset that the neighbouring tree node carries.
//
// Every position, in errors, in trees and in our structs, is a byte offset into the whole text that was passed to [Parse].
package parser
