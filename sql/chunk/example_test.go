package chunk_test

import (
	"fmt"

	"streamdb/sql/chunk"
)

// A chunk is written as a line of types and a line a change.
func ExampleParse() {
	c := chunk.Parse(`
		I T
		+ 1 one
		- 2 .`)
	ids := chunk.Of[int64](c.Cols[0])
	var sum int64
	for i, v := range ids.Data {
		sum += c.Op(i).Sign() * v
	}
	fmt.Println("sum", sum)
	fmt.Print(c)
	// Output:
	// sum -1
	// I T
	// + 1 one
	// - 2 .
}
