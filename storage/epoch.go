package storage

// An Epoch numbers the intervals between barriers. It only grows and is never
// used twice, also across crashes. It is the engine's timestamp of what it wrote.
type Epoch uint64
