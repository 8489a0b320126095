package parser

// maxDepth bounds how deep a tree may get. The grammar's C code walks trees by recursion without a check of its own: 200,000 times
// "+1" would overflow its stack and take the process down. A tree of 5,000 levels already exceeds what protocol buffers decode.
const maxDepth = 3000

// checkDepth refuses a text whose tree could get deeper than maxDepth. It bounds the depth from above by counting, in each
// parenthesis, the tokens that put a node over what is left of them; commas and AND start anew, since lists are flat.
func (p *parser) checkDepth() error {
	if p.lex.chains < maxDepth {
		return nil // parentheses alone are bounded by the grammar's own stack
	}
	type group struct {
		sets, joins int // set operations nest over everything in the group, joins over a FROM item
		chain       int // operators since the last separator
		inner       int // deepest parenthesis since the last separator
		deepest     int // of the finished stretches
	}
	stack := []group{{}}
	depth := func(g group) int { return g.sets + max(g.deepest, g.joins+g.chain+g.inner) }
	for i, t := range p.toks {
		g := &stack[len(stack)-1]
		switch t.kind {
		case op:
			switch p.text[t.pos] {
			case '(', '[', '{':
				stack = append(stack, group{})
			case ')', ']', '}':
				if len(stack) == 1 {
					break
				}
				d := depth(*g) + 1
				stack = stack[:len(stack)-1]
				g = &stack[len(stack)-1]
				g.inner = max(g.inner, d)
			case ',':
				g.deepest = max(g.deepest, g.joins+g.chain+g.inner)
				g.joins, g.chain, g.inner = 0, 0, 0
			case ';':
				if len(stack) == 1 {
					if depth(*g) > maxDepth {
						return tooDeep()
					}
					*g = group{}
				}
			case '.':
			default:
				g.chain++
			}
		case word:
			var buf [16]byte
			if t.end-t.pos > 16 {
				break
			}
			switch string(lower(buf[:0], p.src(i))) {
			case "union", "intersect", "except":
				g.deepest = max(g.deepest, g.joins+g.chain+g.inner)
				g.joins, g.chain, g.inner = 0, 0, 0
				g.sets++
			case "join":
				g.joins++
			case "not", "is", "isnull", "notnull", "collate", "at", "in", "like", "ilike", "similar", "between", "case":
				g.chain++
			case "and", "or", "when", "then", "else", "select", "from", "where", "on":
				g.deepest = max(g.deepest, g.chain+g.inner)
				g.chain, g.inner = 0, 0
			}
		}
		if depth(stack[len(stack)-1]) > maxDepth {
			return tooDeep()
		}
	}
	return nil
}
