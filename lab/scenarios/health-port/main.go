// SPDX-License-Identifier: Apache-2.0

// Command orders asks a store for each order, and says at a port of its own whether it is well.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	health := flag.String("health", "127.0.0.1:8081", "address at which it says whether it is well")
	store := flag.String("store", "http://127.0.0.1:8082/", "what is asked for each order")
	flag.Parse()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	orders := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer, err := client.Get(*store)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		io.Copy(w, answer.Body)
	})
	well := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "well") })
	go func() { log.Fatal("orders: ", http.ListenAndServe(*health, well)) }()
	log.Fatal("orders: ", http.ListenAndServe(*listen, orders))
}
