// SPDX-License-Identifier: Apache-2.0

// Command similar answers which items of a catalogue are most like a given one.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"math"
	"math/rand"
	"net/http"
	"slices"
	"strconv"
)

const (
	dimensions = 96
	items      = 20000
	answers    = 10
	planes     = 8 // bits of the index key
)

type vector [dimensions]float32

type hit struct {
	Item  int     `json:"item"`
	Score float64 `json:"score"`
}

// cosine is what a first version does: both norms anew for each pair.
func cosine(a, b *vector) float64 {
	return dot(a, b) / (math.Sqrt(dot(a, a)) * math.Sqrt(dot(b, b)))
}

type catalogue struct {
	vectors []vector
	norms   []float64
	normals [planes]vector
	buckets map[uint32][]int
}

func newCatalogue() *catalogue {
	random := rand.New(rand.NewSource(1))
	c := &catalogue{vectors: make([]vector, items), norms: make([]float64, items), buckets: map[uint32][]int{}}
	fill := func(v *vector) {
		for i := range v {
			v[i] = float32(random.NormFloat64())
		}
	}
	for i := range c.normals {
		fill(&c.normals[i])
	}
	for i := range c.vectors {
		fill(&c.vectors[i])
		c.norms[i] = math.Sqrt(dot(&c.vectors[i], &c.vectors[i]))
		key := c.key(&c.vectors[i])
		c.buckets[key] = append(c.buckets[key], i)
	}
	return c
}

func dot(a, b *vector) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// key says on which side of each plane a vector lies; near vectors mostly share it.
func (c *catalogue) key(v *vector) uint32 {
	var key uint32
	for i := range c.normals {
		if dot(v, &c.normals[i]) > 0 {
			key |= 1 << i
		}
	}
	return key
}

func (c *catalogue) naive(item int) []hit {
	best := make([]hit, 0, answers+1)
	for i := range c.vectors {
		best = keep(best, hit{i, cosine(&c.vectors[item], &c.vectors[i])})
	}
	return best
}

func (c *catalogue) indexed(item int) []hit {
	best := make([]hit, 0, answers+1)
	question := &c.vectors[item]
	for _, i := range c.buckets[c.key(question)] {
		best = keep(best, hit{i, dot(question, &c.vectors[i]) / (c.norms[item] * c.norms[i])})
	}
	return best
}

func keep(best []hit, h hit) []hit {
	if len(best) == answers && h.Score <= best[answers-1].Score {
		return best
	}
	at, _ := slices.BinarySearchFunc(best, h, func(a, b hit) int {
		if a.Score > b.Score {
			return -1
		}
		return 1
	})
	best = slices.Insert(best, at, h)
	return best[:min(len(best), answers)]
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	search := flag.String("search", "naive", "naive or indexed")
	flag.Parse()
	c := newCatalogue()
	find := c.naive
	if *search == "indexed" {
		find = c.indexed
	}
	http.HandleFunc("/similar", func(w http.ResponseWriter, r *http.Request) {
		item, err := strconv.Atoi(r.FormValue("item"))
		if err != nil || item < 0 || item >= items {
			http.Error(w, "no such item", http.StatusNotFound)
			return
		}
		_ = json.NewEncoder(w).Encode(find(item))
	})
	log.Fatal("similar: ", http.ListenAndServe(*listen, nil))
}
