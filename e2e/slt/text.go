package slt

import (
	"crypto/md5"
	"fmt"
	"slices"
	"strings"
)

// format prints a result as the lines of a script. With ValueSort each value is a line.
func format(rows [][][]byte, mode SortMode) []string {
	var lines []string
	for _, row := range rows {
		values := make([]string, len(row))
		for i, v := range row {
			values[i] = FormatValue(v)
		}
		if mode == ValueSort {
			lines = append(lines, values...)
			continue
		}
		line := strings.TrimRight(strings.Join(values, " "), " \t")
		if line == "" {
			line = "(blank)" // an empty line would end the expectation
		}
		lines = append(lines, line)
	}
	if mode != NoSort {
		slices.Sort(lines)
	}
	return lines
}

// FormatValue prints one value in text format as scripts show it; nil is NULL.
func FormatValue(v []byte) string {
	switch {
	case v == nil:
		return "NULL"
	case len(v) == 0:
		return "(empty)"
	}
	return strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(string(v))
}

// hash is the line that stands for a result above the hash threshold.
func hash(lines []string, values int) string {
	sum := md5.Sum([]byte(strings.Join(lines, "\n") + "\n"))
	return fmt.Sprintf("%d values hashing to %x", values, sum)
}

// Diff shows how got differs from want, a line each: "- " only in want, "+ " only
// in got, "  " in both. Long equal stretches are left out, and so is all past 200 lines.
func Diff(want, got []string) string {
	const most = 2000 // past it the quadratic table is not worth its memory
	if len(want) > most || len(got) > most {
		return fmt.Sprintf("\t%d lines wanted, %d got; the first difference is in line %d\n%s", len(want), len(got), firstDifference(want, got)+1,
			Diff(around(want, firstDifference(want, got)), around(got, firstDifference(want, got))))
	}
	// keep[i][j] is the length of the longest common subsequence of want[i:] and got[j:].
	keep := make([][]int, len(want)+1)
	for i := range keep {
		keep[i] = make([]int, len(got)+1)
	}
	for i := len(want) - 1; i >= 0; i-- {
		for j := len(got) - 1; j >= 0; j-- {
			if want[i] == got[j] {
				keep[i][j] = keep[i+1][j+1] + 1
			} else {
				keep[i][j] = max(keep[i+1][j], keep[i][j+1])
			}
		}
	}
	var all []string
	i, j := 0, 0
	for i < len(want) || j < len(got) {
		switch {
		case i < len(want) && j < len(got) && want[i] == got[j]:
			all = append(all, "  "+want[i])
			i, j = i+1, j+1
		case j == len(got) || i < len(want) && keep[i+1][j] >= keep[i][j+1]:
			all = append(all, "- "+want[i])
			i++
		default:
			all = append(all, "+ "+got[j])
			j++
		}
	}
	return render(all)
}

// render drops what is equal and more than three lines from a difference.
func render(all []string) string {
	near := make([]bool, len(all))
	for i, l := range all {
		if l[0] != ' ' {
			for k := max(0, i-3); k <= min(len(all)-1, i+3); k++ {
				near[k] = true
			}
		}
	}
	var b strings.Builder
	shown, gap := 0, false
	for i, l := range all {
		if !near[i] {
			gap = true
			continue
		}
		if gap && shown > 0 {
			b.WriteString("\t  …\n")
		}
		gap = false
		if shown++; shown > 200 {
			b.WriteString("\t  … and more\n")
			break
		}
		b.WriteString("\t" + l + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func firstDifference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func around(lines []string, i int) []string {
	return lines[min(len(lines), max(0, i-3)):min(len(lines), i+20)]
}
