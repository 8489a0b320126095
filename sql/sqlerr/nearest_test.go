package sqlerr

import "testing"

// TestNearest: names like the wanted one are found, others are not.
func TestNearest(t *testing.T) {
	names := []string{"origin", "dest", "delay_min", "carrier"}
	for in, want := range map[string]string{"orign": "origin", "dst": "dest", "xyz": "", "o": "", "delay_mn": "delay_min", "roigin": "origin"} {
		if got := Nearest(in, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
	if got := Nearest("abx", []string{"aby", "abz"}); got != "" {
		t.Errorf("two equally near: got %q", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		limit int
		want  int
	}{{"", "", 0, 0}, {"select", "selcet", 2, 1}, {"kitten", "sitting", 3, 3}, {"ab", "", 2, 2}, {"abc", "abc", 0, 0}} {
		if got := EditDistance(c.a, c.b, c.limit); got != c.want {
			t.Errorf("EditDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	if got := EditDistance("flights", "airports", 3); got <= 3 {
		t.Errorf("far words: got %d, want more than the limit", got)
	}
}
