package plan

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A printed is an operator as EXPLAIN shows it: what all formats are made of.
type printed struct {
	name   string
	fields []field
	in     []printed
}

type field struct{ name, value string }

func (p *printed) add(name, format string, args ...any) {
	p.fields = append(p.fields, field{name, fmt.Sprintf(format, args...)})
}

// line is "Name { field: value, … }".
func (p *printed) line() string {
	if len(p.fields) == 0 {
		return p.name
	}
	parts := make([]string, len(p.fields))
	for i, f := range p.fields {
		if parts[i] = f.name + ": " + f.value; f.name == "" {
			parts[i] = f.value
		}
	}
	return p.name + " { " + strings.Join(parts, ", ") + " }"
}

// text draws the tree with a line per operator, inputs below. inset is what stands before
// the branches: every level moves right by two.
func (p *printed) text(out *strings.Builder, prefix string) {
	out.WriteString(p.line())
	out.WriteByte('\n')
	for i := range p.in {
		branch, below := "├─", "│ "
		if i == len(p.in)-1 {
			branch, below = "└─", "  "
		}
		out.WriteString(prefix + branch)
		p.in[i].text(out, prefix+below)
	}
}

// Text is the tree as EXPLAIN prints it; it ends without a newline.
func (p *printed) Text() string {
	var out strings.Builder
	p.text(&out, "")
	return strings.TrimSuffix(out.String(), "\n")
}

type jsonNode struct {
	Name     string            `json:"name"`
	Fields   map[string]string `json:"fields"`
	Children []jsonNode        `json:"children"`
}

func (p *printed) json() jsonNode {
	n := jsonNode{Name: p.name, Fields: map[string]string{}, Children: []jsonNode{}}
	for _, f := range p.fields {
		n.Fields[f.name] = f.value
	}
	for i := range p.in {
		n.Children = append(n.Children, p.in[i].json())
	}
	return n
}

// JSON is the tree with fields as text, indented.
func (p *printed) JSON() string { return indented(p.json()) }

func indented(v any) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil { // strings and maps of strings cannot fail
		panic(err)
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// DOT is the tree for Graphviz; rows flow along the arrows.
func (p *printed) DOT() string {
	var out strings.Builder
	out.WriteString("digraph {\n")
	next := 0
	var walk func(p *printed) int
	walk = func(p *printed) int {
		id := next
		next++
		fmt.Fprintf(&out, "  %d [ label = %q ]\n", id, p.line())
		for i := range p.in {
			fmt.Fprintf(&out, "  %d -> %d\n", walk(&p.in[i]), id)
		}
		return id
	}
	walk(p)
	out.WriteString("}")
	return out.String()
}

// list prints "[a, b]".
func list(items []string) string { return "[" + strings.Join(items, ", ") + "]" }

func ints(ns []int) string { return strings.ReplaceAll(fmt.Sprint(ns), " ", ", ") }
