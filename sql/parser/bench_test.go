package parser

import "testing"

const benchText = "SELECT a.x, count(*) FROM t a JOIN u b ON a.id = b.id WHERE a.y > 10 AND b.z = 'foo' GROUP BY 1 ORDER BY 2 LIMIT 10"

// BenchmarkParse is a plain statement; what is over BenchmarkGrammar is ours.
func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse(benchText); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGrammar(b *testing.B) {
	for b.Loop() {
		grammar(benchText)
	}
}

func BenchmarkParseSource(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("CREATE SOURCE s (a int, b varchar, WATERMARK FOR a AS a - 1) WITH (connector = 'x') FORMAT PLAIN ENCODE JSON"); err != nil {
			b.Fatal(err)
		}
	}
}
