package bind

// nearest is the name most like name, if any is like it: at most three edits
// away, and at most half its length, as PostgreSQL's hints have it. "": none, or
// several equally near.
func nearest(name string, among []string) string {
	return nearestBy(name, among, func(s string) string { return s })
}

// nearestBy is nearest with the part of each candidate that is compared.
func nearestBy(name string, among []string, part func(string) string) string {
	best, at, ties := 4, "", 0
	for _, c := range among {
		p := part(c)
		d := distance(name, p)
		if d > len(name)/2 || d > 3 {
			continue
		}
		switch {
		case d < best:
			best, at, ties = d, c, 0
		case d == best && c != at:
			ties++
		}
	}
	if ties > 0 {
		return ""
	}
	return at
}

// distance is Levenshtein's: the least number of bytes inserted, deleted or replaced.
func distance(a, b string) int {
	if len(a)-len(b) > 3 || len(b)-len(a) > 3 || len(a) > 64 {
		return 99
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			up := row[j+1]
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(up+1, row[j]+1, diag+cost)
			diag = up
		}
	}
	return row[len(b)]
}
