// SPDX-License-Identifier: Apache-2.0

// Command ledger answers from memory, while a goroutine writes what it has to the disk and syncs it, again and again.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync/atomic"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	kilobytes := flag.Int("kilobytes", 256, "what is written between two syncs")
	flag.Parse()
	var written atomic.Int64
	go compact(*kilobytes<<10, &written)
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, written.Load())
	})
	log.Fatal("ledger: ", http.ListenAndServe(*listen, nil))
}

func compact(size int, written *atomic.Int64) {
	page := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	for {
		segment, err := os.Create("segment")
		if err != nil {
			log.Fatal("ledger: ", err)
		}
		for range 64 {
			if _, err := segment.Write(page); err != nil {
				log.Fatal("ledger: ", err)
			}
			if err := segment.Sync(); err != nil {
				log.Fatal("ledger: ", err)
			}
			written.Add(int64(size))
		}
		segment.Close()
	}
}
