// SPDX-License-Identifier: Apache-2.0

// Command streamd is a streaming service: Go accepts the viewers, a C library serves them.
//
// Go keeps what it is good at (accepting, flags, a status page) and hands every socket to mediaio,
// whose one thread sends a chunk to each viewer every interval. How long that thread may wait in a
// poll is decided by this service's own code, in wait.c.
package main

/*
#include "wait.h"
*/
import "C"

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"syscall"
	"time"
	"unsafe"

	"story/goepoll/mediaio"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:9002", "address for viewers")
	status := flag.String("status", "127.0.0.1:9003", "address of the status page")
	poll := flag.String("poll", "eager", "how long a poll may wait: eager (the fault), floor (at least 1 ms), deadline (until the next chunk), fixed (= deadline)")
	interval := flag.Duration("interval", 20*time.Millisecond, "time between two chunks of a viewer")
	bytes := flag.Int("bytes", 4096, "size of a chunk")
	flag.Parse()
	if err := serve(*listen, *status, *poll, *interval, *bytes); err != nil {
		log.Fatal("streamd: ", err)
	}
}

func serve(listen, status, poll string, interval time.Duration, bytes int) error {
	timeout, err := timeoutFunction(poll)
	if err != nil {
		return err
	}
	reactor, err := mediaio.New(mediaio.Options{
		Interval: interval, ChunkBytes: bytes, Timeout: timeout,
		WaitAny: poll == "deadline" || poll == "fixed",
	})
	if err != nil {
		return err
	}
	go reactor.Run()

	http.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(reactor.Stats())
	})
	page, err := net.Listen("tcp", status)
	if err != nil {
		return err
	}
	go func() { log.Fatal("streamd: ", http.Serve(page, nil)) }()

	viewers, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		conn, err := viewers.Accept()
		if err != nil {
			return err
		}
		if err := handOver(reactor, conn.(*net.TCPConn)); err != nil {
			log.Print("streamd: ", err)
		}
	}
}

// handOver gives the library a descriptor of its own and forgets Go's.
func handOver(reactor *mediaio.Reactor, conn *net.TCPConn) error {
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var fd int
	var failed error
	if err := raw.Control(func(own uintptr) {
		fd, failed = syscall.Dup(int(own))
		syscall.CloseOnExec(fd)
	}); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return reactor.Add(fd)
}

func timeoutFunction(poll string) (unsafe.Pointer, error) {
	switch poll {
	case "eager":
		return unsafe.Pointer(C.streamd_wait_eager), nil
	case "floor":
		return unsafe.Pointer(C.streamd_wait_floor), nil
	case "deadline", "fixed":
		return unsafe.Pointer(C.streamd_wait_deadline), nil
	}
	return nil, fmt.Errorf("-poll %s is not known; use eager, floor, deadline or fixed", poll)
}
