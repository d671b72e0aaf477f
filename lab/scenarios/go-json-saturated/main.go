// SPDX-License-Identifier: Apache-2.0

// Command orders takes an order as JSON, prices it and answers with JSON.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"sort"
	"strings"
)

type line struct {
	Article string   `json:"article"`
	Pieces  int      `json:"pieces"`
	Price   float64  `json:"price"`
	Tags    []string `json:"tags"`
}

type order struct {
	Customer string `json:"customer"`
	Lines    []line `json:"lines"`
}

type confirmation struct {
	Customer string             `json:"customer"`
	Lines    []line             `json:"lines"`
	ByTag    map[string]float64 `json:"by_tag"`
	Total    float64            `json:"total"`
}

func confirm(o order) confirmation {
	c := confirmation{Customer: strings.ToUpper(o.Customer), Lines: o.Lines, ByTag: map[string]float64{}}
	sort.Slice(c.Lines, func(a, b int) bool { return c.Lines[a].Price > c.Lines[b].Price })
	for _, l := range c.Lines {
		sum := float64(l.Pieces) * l.Price
		c.Total += sum
		for _, tag := range l.Tags {
			c.ByTag[tag] += sum
		}
	}
	return c
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	flag.Parse()
	http.HandleFunc("/order", func(w http.ResponseWriter, r *http.Request) {
		var o order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(confirm(o))
	})
	log.Fatal("orders: ", http.ListenAndServe(*listen, nil))
}
