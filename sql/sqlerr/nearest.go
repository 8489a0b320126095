package sqlerr

import "math"

// Nearest is the name most like name, if any is like it: at most three edits away,
// and at most half its length, as PostgreSQL's hints have it. "": none, or several
// equally near.
func Nearest(name string, among []string) string {
	return NearestBy(name, among, func(s string) string { return s })
}

// NearestBy is Nearest with the part of each candidate that is compared.
func NearestBy(name string, among []string, part func(string) string) string {
	limit := min(3, len(name)/2)
	best, at, ties := limit+1, "", false
	for _, c := range among {
		switch d := EditDistance(name, part(c), limit); {
		case d > limit:
		case d < best:
			best, at, ties = d, c, false
		case d == best && c != at:
			ties = true
		}
	}
	if ties {
		return ""
	}
	return at
}

// EditDistance is the least number of bytes inserted, deleted or replaced, or of
// neighbours swapped, that make a of b (optimal string alignment), if it is at most
// limit; else it is some number above limit.
func EditDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit || len(a) > 64 {
		return math.MaxInt32
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
			least = min(least, cur[j])
		}
		if least > limit+1 {
			return least
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
