// SPDX-License-Identifier: Apache-2.0

// Command thumbnails maps a fresh buffer for each request, draws into it and unmaps it. Beside that it changes the
// protection of a large table, page by page under the one lock that a process has for its memory map, and rests for as long
// as it was told. Without a table nothing stands in the way.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"syscall"
	"time"
)

const (
	private = syscall.MAP_PRIVATE | syscall.MAP_ANON
	write   = syscall.PROT_READ | syscall.PROT_WRITE
	page    = 4096
)

// remap maps memory without huge pages, so that there are as many page table entries as pages.
func remap(bytes int) []byte {
	memory, err := syscall.Mmap(-1, 0, bytes, write, private)
	if err != nil {
		log.Fatal("thumbnails: mmap: ", err)
	}
	return memory
}

// protect makes a table read-only and writable again, for ever.
func protect(table []byte, rest time.Duration) {
	const noHugePages = 15
	if err := syscall.Madvise(table, noHugePages); err != nil {
		log.Print("thumbnails: madvise: ", err)
	}
	for i := 0; i < len(table); i += page {
		table[i] = 1
	}
	for {
		for _, rights := range []int{syscall.PROT_READ, write} {
			if err := syscall.Mprotect(table, rights); err != nil {
				log.Fatal("thumbnails: mprotect: ", err)
			}
		}
		time.Sleep(rest)
	}
}

func draw() byte {
	buffer := remap(64 * page)
	for i := 0; i < len(buffer); i += page {
		buffer[i] = byte(i)
	}
	sum := buffer[0] + buffer[page]
	if err := syscall.Munmap(buffer); err != nil {
		log.Fatal("thumbnails: munmap: ", err)
	}
	return sum
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	megabytes := flag.Int("table", 0, "size of the table, MB; 0 = none")
	rest := flag.Duration("rest", 10*time.Millisecond, "rest between two changes of the table")
	flag.Parse()
	if *megabytes > 0 {
		go protect(remap(*megabytes<<20), *rest)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, draw())
	})
	log.Fatal("thumbnails: ", http.ListenAndServe(*listen, nil))
}
