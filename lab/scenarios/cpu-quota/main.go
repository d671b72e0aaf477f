// SPDX-License-Identifier: Apache-2.0

// Command reports renders a sales report as compressed JSON: sorting, hashing, encoding and
// compressing, none of which stands out.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"slices"
	"strings"
)

type sale struct {
	Customer string  `json:"customer"`
	Article  string  `json:"article"`
	Amount   float64 `json:"amount"`
}

type report struct {
	Sales  []sale             `json:"sales"`
	Totals map[string]float64 `json:"totals"`
	Digest string             `json:"digest"`
}

func sales(count int) []sale {
	random := rand.New(rand.NewSource(7))
	all := make([]sale, count)
	for i := range all {
		all[i] = sale{
			Customer: fmt.Sprintf("customer-%03d", random.Intn(100)),
			Article:  fmt.Sprintf("article-%05d", random.Intn(100000)),
			Amount:   float64(random.Intn(100000)) / 100,
		}
	}
	return all
}

func render(all []sale) ([]byte, error) {
	r := report{Sales: slices.Clone(all), Totals: map[string]float64{}}
	slices.SortFunc(r.Sales, func(a, b sale) int {
		if c := strings.Compare(a.Customer, b.Customer); c != 0 {
			return c
		}
		return strings.Compare(a.Article, b.Article)
	})
	digest := sha256.New()
	for _, s := range r.Sales {
		r.Totals[s.Customer] += s.Amount
		fmt.Fprintf(digest, "%s %s %.2f\n", s.Customer, s.Article, s.Amount)
	}
	r.Digest = hex.EncodeToString(digest.Sum(nil))
	var out bytes.Buffer
	zip, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(zip).Encode(r); err != nil {
		return nil, err
	}
	return out.Bytes(), zip.Close()
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	flag.Parse()
	all := sales(1200)
	http.HandleFunc("/report", func(w http.ResponseWriter, _ *http.Request) {
		body, err := render(all)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/gzip")
		_, _ = w.Write(body)
	})
	log.Fatal("reports: ", http.ListenAndServe(*listen, nil))
}
