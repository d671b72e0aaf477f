// SPDX-License-Identifier: Apache-2.0

// Command digest answers each request with a digest of its path, worked over so many rounds: a web
// service whose CPU work for one request can be set exactly.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"log"
	"net/http"
)

type answer struct {
	Path   string `json:"path"`
	Rounds int    `json:"rounds"`
	Digest string `json:"digest"`
}

func work(path string, rounds int) answer {
	sum := sha256.Sum256([]byte(path))
	for range rounds {
		sum = sha256.Sum256(sum[:])
	}
	return answer{path, rounds, hex.EncodeToString(sum[:])}
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	rounds := flag.Int("rounds", 100, "rounds for each request")
	flag.Parse()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(work(r.URL.Path, *rounds))
	})
	log.Fatal("digest: ", http.ListenAndServe(*listen, nil))
}
