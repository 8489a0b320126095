package storage

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/zeebo/xxh3"
)

// Sorting agrees with comparing, whatever the keys share and wherever they end.
func TestSortLayer(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for round := range 60 {
		l := newLayer(0)
		alphabet := 1 + r.IntN(1+round*4)
		prefix := make([]byte, r.IntN(20))
		for range 1 + r.IntN(4000) {
			key := bytes.Clone(prefix)
			for range r.IntN(30) {
				key = append(key, byte(r.IntN(alphabet)))
			}
			h := xxh3.Hash(key)
			at, found := l.find(key, h)
			l.put(at, found, key, h, []byte{1}, true)
		}
		s := l.sort()
		if len(s) != len(l.ents) {
			t.Fatal(len(s), len(l.ents))
		}
		for i := 1; i < len(s); i++ {
			if bytes.Compare(l.key(s[i-1]), l.key(s[i])) >= 0 {
				t.Fatalf("round %d: %x before %x", round, l.key(s[i-1]), l.key(s[i]))
			}
		}
	}
}
