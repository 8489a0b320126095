package chunk

import "testing"

func TestPrettyRoundTrip(t *testing.T) {
	for _, text := range []string{
		"I T TS\n+ 1 abc 2026-01-01T00:00:00\n- 2 \"a b\" .\n",
		"i s F f B D\n+ 1 2 1.5 2.5 t 1.50\n+ . . . . . .\n",
		"T\n+ \"\"\n+ \".\"\n+ \"say \\\"x\\\"\"\n+ \"a\\nb\"\n",
		"DT TM TZ IV Y\n+ 2026-01-01 01:02:03 2026-01-01T00:00:00+00 \"1 day 02:00:00\" \"\\\\x01ff\"\n",
		"I[] T[]\n+ {1,2,NULL} \"{a,\\\"b c\\\"}\"\n",
		"varchar numeric(10,2) bpchar\n+ x 1.50 y\n",
		"\n+\n",
	} {
		if got := Parse(text).String(); got != text {
			t.Errorf("got:\n%s\nwant:\n%s", got, text)
		}
	}
}

func TestPrettyOps(t *testing.T) {
	c := Parse("I\nU- 1\nU+ 2\n\n# a comment\n+ 3")
	if got, want := c.String(), "I\n- 1\n+ 2\n+ 3\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if c := Parse("I\n+ 1"); c.Ops != nil || c.N != 1 {
		t.Errorf("inserts only: Ops %v, N %d", c.Ops, c.N)
	}
}
