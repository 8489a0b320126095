package batch

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"streamdb/sql/chunk"
	"streamdb/sql/sqlerr"
	"streamdb/storage"
)

// A parallelScan reads a whole relation. It begins alone; what turns out to be
// large is read vnode by vnode by several goroutines that run a little ahead.
// Rows come in key order all the same.
type parallelScan struct {
	*access
	snap *storage.Snapshot
	cols []int
	size int

	begun bool
	next  func() (*chunk.Chunk, error, bool) // the lone scan; nil: over
	stop  func()
	last  []byte // its last key

	spans   []span // what is left for the workers
	at      int    // the span that comes out
	workers []chan scanned
	quit    chan struct{} // closed: the workers shall end
	wait    sync.WaitGroup
}

// scanned is what a worker hands over; without a chunk or error its span has ended.
type scanned struct {
	c   *chunk.Chunk
	err error
}

const (
	aloneChunks = 8 // read before workers are started
	aheadChunks = 8 // that a worker may be ahead
	maxWorkers  = 4
)

// alone reads the first rows.
func (p *parallelScan) alone(yield func(*chunk.Chunk, error) bool) {
	dec := p.codec.NewDecoder(p.cols)
	b := chunk.NewBuilder(p.typs, min(p.size, 16)) // few rows are as common as many
	chunks := 0
	for kv, err := range p.snap.Scan(p.desc, nil, nil) {
		if err == nil {
			err = dec.Decode(kv.Key, kv.Val, b.Cols)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		c := b.Done(chunk.Insert)
		if c == nil {
			continue
		}
		if chunks++; chunks == 1 {
			b = chunk.NewBuilder(p.typs, p.size)
		}
		if chunks == aloneChunks {
			p.last = append([]byte(nil), kv.Key...)
		}
		if !yield(c, nil) || p.last != nil {
			return
		}
	}
	if c := b.Take(); c != nil {
		yield(c, nil)
	}
}

func (p *parallelScan) Next(ctx context.Context) (*chunk.Chunk, error) {
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	if !p.begun {
		p.begun = true
		p.next, p.stop = iter.Pull2(p.alone)
	}
	if p.next != nil {
		c, err, ok := p.next()
		if ok {
			return c, err
		}
		p.stop()
		p.next, p.stop = nil, nil
		if p.last != nil {
			p.start()
		}
	}
	for p.at < len(p.spans) {
		select {
		case r := <-p.workers[p.at%len(p.workers)]:
			if r.err != nil {
				p.at = len(p.spans)
			}
			if r.c != nil || r.err != nil {
				return r.c, r.err
			}
			p.at++
		case <-ctx.Done():
			return nil, stopped(ctx)
		}
	}
	return nil, nil
}

// start divides what comes after the last key among workers.
func (p *parallelScan) start() {
	first := storage.VnodeOf(p.last)
	p.spans = append(p.spans, span{from: append(p.last, 0), to: storage.NextPrefix(storage.VnodePrefix(first))})
	for v := int(first) + 1; v < p.desc.Vnodes; v++ {
		prefix := storage.VnodePrefix(uint16(v))
		p.spans = append(p.spans, span{from: prefix, to: storage.NextPrefix(prefix)})
	}
	p.quit = make(chan struct{})
	p.workers = make([]chan scanned, min(maxWorkers, runtime.GOMAXPROCS(0), len(p.spans)))
	for w := range p.workers {
		p.workers[w] = make(chan scanned, aheadChunks)
		p.wait.Go(func() { p.work(w) })
	}
}

// work reads every span whose turn is w.
func (p *parallelScan) work(w int) {
	send := func(r scanned) bool {
		select {
		case p.workers[w] <- r:
			return r.err == nil
		case <-p.quit:
			return false
		}
	}
	defer func() {
		if x := recover(); x != nil {
			send(scanned{err: sqlerr.New(sqlerr.Internal, "scan %s: %v", p.desc.Name, x)})
		}
	}()
	for i := w; i < len(p.spans); i += len(p.workers) {
		for c, err := range p.snap.ScanChunks(p.desc, p.cols, p.spans[i].from, p.spans[i].to, p.size) {
			if !send(scanned{c, err}) {
				return
			}
		}
		if !send(scanned{}) {
			return
		}
	}
}

// Close ends the workers and waits for them.
func (p *parallelScan) Close() {
	p.begun = true
	if p.stop != nil {
		p.stop()
		p.next, p.stop = nil, nil
	}
	if p.quit != nil {
		close(p.quit)
		p.wait.Wait()
		p.quit = nil
	}
	p.spans, p.at = nil, 0
}
