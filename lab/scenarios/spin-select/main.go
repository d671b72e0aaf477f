// SPDX-License-Identifier: Apache-2.0

// Command turnstile answers each request with its number, which one goroutine gives out. That one waits for the next visitor
// in a select, which may have a default: then it looks again and again.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	spin := flag.Bool("spin", false, "do not block in the select")
	flag.Parse()
	visitors := make(chan chan int, 16)
	if *spin {
		go countSpinning(visitors)
	} else {
		go countBlocking(visitors)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer := make(chan int, 1)
		visitors <- answer
		fmt.Fprintln(w, <-answer)
	})
	log.Fatal("turnstile: ", http.ListenAndServe(*listen, nil))
}

func countSpinning(visitors chan chan int) {
	count := 0
	for {
		select {
		case visitor := <-visitors:
			count++
			visitor <- count
		default:
		}
	}
}

func countBlocking(visitors chan chan int) {
	count := 0
	for visitor := range visitors {
		count++
		visitor <- count
	}
}
