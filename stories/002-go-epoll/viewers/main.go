// SPDX-License-Identifier: Apache-2.0

// Command viewers plays N viewers of streamd and reports whether the streams were smooth.
//
// It counts delivered chunks and measures jitter: how far the gap between two chunks of one viewer
// was from the interval it should have been.
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	headerBytes  = 16
	reportAck    = 1
	reportAlive  = 2
	chunksPerAck = 10
)

type viewer struct {
	gaps   []time.Duration
	chunks int
	bytes  int
	err    error
}

// Result is printed as JSON.
type Result struct {
	Viewers       int     `json:"viewers"`
	Seconds       float64 `json:"seconds"`
	Chunks        int     `json:"chunks"`
	ChunksPerSec  float64 `json:"chunks_per_second"`
	BytesPerSec   float64 `json:"bytes_per_second"`
	JitterP50Ms   float64 `json:"jitter_p50_ms"`
	JitterP99Ms   float64 `json:"jitter_p99_ms"`
	FailedViewers int     `json:"failed_viewers"`
}

func main() {
	address := flag.String("connect", "127.0.0.1:9002", "address of streamd")
	count := flag.Int("viewers", 4, "number of viewers")
	length := flag.Duration("for", 5*time.Second, "how long to watch")
	interval := flag.Duration("interval", 20*time.Millisecond, "interval of chunks that streamd was told")
	flag.Parse()

	viewers := make([]viewer, *count)
	begin := time.Now()
	var all sync.WaitGroup
	for i := range viewers {
		all.Add(1)
		go func() {
			defer all.Done()
			// Spread over one interval, as real viewers are.
			time.Sleep(*interval * time.Duration(i) / time.Duration(*count))
			viewers[i].watch(*address, begin.Add(*length))
		}()
	}
	all.Wait()
	time.Sleep(time.Until(begin.Add(*length)))
	if err := json.NewEncoder(os.Stdout).Encode(sum(viewers, *interval, time.Since(begin))); err != nil {
		log.Fatal("viewers: ", err)
	}
}

func (v *viewer) watch(address string, end time.Time) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		v.err = err
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(end)
	var header [headerBytes]byte
	payload := make([]byte, 1<<16)
	last, alive := time.Time{}, time.Now()
	for {
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			v.fail(err)
			return
		}
		size := int(binary.LittleEndian.Uint32(header[0:]))
		if _, err := io.ReadFull(conn, payload[:size-headerBytes]); err != nil {
			v.fail(err)
			return
		}
		now := time.Now()
		if !last.IsZero() {
			v.gaps = append(v.gaps, now.Sub(last))
		}
		last = now
		v.chunks++
		v.bytes += size
		if v.chunks%chunksPerAck == 0 {
			report(conn, reportAck, binary.LittleEndian.Uint32(header[4:]))
		}
		if now.Sub(alive) >= time.Second {
			report(conn, reportAlive, 0)
			alive = now
		}
	}
}

// fail remembers an error, except the end of the watching time.
func (v *viewer) fail(err error) {
	if timeout, ok := err.(net.Error); !ok || !timeout.Timeout() {
		v.err = err
	}
}

func report(conn net.Conn, kind, sequence uint32) {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[0:], kind)
	binary.LittleEndian.PutUint32(b[4:], sequence)
	_, _ = conn.Write(b[:]) // an error shows at the next read
}

func sum(viewers []viewer, interval, length time.Duration) Result {
	r := Result{Viewers: len(viewers), Seconds: length.Seconds()}
	var jitter []float64
	var bytes int
	for _, v := range viewers {
		r.Chunks += v.chunks
		bytes += v.bytes
		if v.err != nil {
			r.FailedViewers++
		}
		for _, gap := range v.gaps {
			jitter = append(jitter, (gap-interval).Abs().Seconds()*1e3)
		}
	}
	r.ChunksPerSec = float64(r.Chunks) / length.Seconds()
	r.BytesPerSec = float64(bytes) / length.Seconds()
	slices.Sort(jitter)
	if n := len(jitter); n > 0 {
		r.JitterP50Ms = jitter[n/2]
		r.JitterP99Ms = jitter[n*99/100]
	}
	return r
}
