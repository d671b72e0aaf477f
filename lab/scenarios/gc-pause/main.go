// SPDX-License-Identifier: Apache-2.0

// Command prices looks prices up in a large map of pointers that it keeps, and builds an answer for each request. How much
// room the collector has is an argument.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"runtime/debug"
	"strings"
)

type price struct {
	article string
	cents   *int
	next    *price
}

func load(articles int) map[int]*price {
	prices := make(map[int]*price, articles)
	var last *price
	for i := range articles {
		cents := 100 + i*37%9900
		last = &price{fmt.Sprintf("article %d", i), &cents, last}
		prices[i] = last
	}
	return prices
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	articles := flag.Int("articles", 400_000, "articles in the map")
	percent := flag.Int("gogc", 100, "growth of the heap before the collector runs")
	flag.Parse()
	debug.SetGCPercent(*percent)
	prices := load(*articles)
	http.HandleFunc("/prices", func(w http.ResponseWriter, _ *http.Request) {
		var lines []string
		for i := range 100 {
			found := prices[i*3989%*articles]
			lines = append(lines, fmt.Sprintf("%s: %d", found.article, *found.cents))
		}
		_, _ = fmt.Fprintln(w, strings.Join(lines, "\n"))
	})
	log.Fatal("prices: ", http.ListenAndServe(*listen, nil))
}
