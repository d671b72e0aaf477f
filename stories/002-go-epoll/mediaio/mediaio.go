// SPDX-License-Identifier: Apache-2.0

// Package mediaio is the Go face of the C library of the same name.
package mediaio

/*
#include "mediaio.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// Options of a reactor. Timeout is a C function of type mio_timeout_fn: it runs before every poll,
// where a call back into Go would cost more than the poll.
type Options struct {
	Interval   time.Duration
	ChunkBytes int
	Timeout    unsafe.Pointer
	WaitAny    bool
}

// Stats are counts since the start.
type Stats struct {
	Polls      uint64 `json:"polls"`
	EmptyPolls uint64 `json:"empty_polls"`
	Reads      uint64 `json:"reads"`
	Chunks     uint64 `json:"chunks"`
	Skipped    uint64 `json:"skipped"`
	Sessions   uint64 `json:"sessions"`
}

// Reactor sends chunks to all sessions from one thread.
type Reactor struct {
	c *C.struct_mio_reactor
}

// New makes a reactor that does not run yet.
func New(o Options) (*Reactor, error) {
	c := C.mio_reactor_new(&C.struct_mio_options{
		interval_ns: C.int64_t(o.Interval.Nanoseconds()),
		chunk_bytes: C.uint32_t(o.ChunkBytes),
		timeout:     C.mio_timeout_fn(o.Timeout),
		wait_any:    C.bool(o.WaitAny),
	})
	if c == nil {
		return nil, errors.New("failed to make a reactor: chunk size out of range or no descriptors left")
	}
	return &Reactor{c}, nil
}

// Run never returns; its goroutine keeps a thread for itself.
func (r *Reactor) Run() {
	runtime.LockOSThread()
	C.mio_reactor_run(r.c)
}

// Add hands a socket over; the reactor closes it.
func (r *Reactor) Add(fd int) error {
	if code := C.mio_reactor_add(r.c, C.int(fd)); code != 0 {
		return fmt.Errorf("failed to hand a session over: %w", syscall.Errno(-code))
	}
	return nil
}

// Stats reads the counts.
func (r *Reactor) Stats() Stats {
	var c C.struct_mio_stats
	C.mio_reactor_stats(r.c, &c)
	return Stats{
		Polls: uint64(c.polls), EmptyPolls: uint64(c.empty_polls), Reads: uint64(c.reads),
		Chunks: uint64(c.chunks), Skipped: uint64(c.skipped), Sessions: uint64(c.sessions),
	}
}
