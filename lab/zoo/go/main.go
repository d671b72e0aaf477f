// SPDX-License-Identifier: Apache-2.0

// Command gopher is a healthy web service on port 8080; its argument says which: json, proxy, store or news.
package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

const back = "http://127.0.0.1:8081"

type item struct {
	ID    int    `json:"id"`
	Name  string `json:"name"`
	Cents int    `json:"cents"`
}

func main() {
	handlers := map[string]func() http.Handler{"json": orders, "proxy": proxy, "store": store, "news": news}
	handler, ok := handlers[os.Args[1]]
	if !ok {
		log.Fatalf("gopher: no %q", os.Args[1])
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", handler()))
}

func orders() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var items []item
		if err := json.NewDecoder(r.Body).Decode(&items); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		sum := 0
		for _, one := range items {
			sum += one.Cents
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"items": items, "cents": sum})
	})
}

func proxy() http.Handler {
	to, err := url.Parse(back)
	if err != nil {
		log.Fatal(err)
	}
	handler := httputil.NewSingleHostReverseProxy(to)
	handler.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	return handler
}

func store() http.Handler {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := client.Get(back + "/")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		text, _ := io.ReadAll(answer.Body)
		_, _ = w.Write(text)
	})
}

// news answers whoever asks for it once there is some.
func news() http.Handler {
	var mutex sync.Mutex
	happened := make(chan struct{})
	go func() {
		for range time.Tick(7 * time.Second) {
			mutex.Lock()
			close(happened)
			happened = make(chan struct{})
			mutex.Unlock()
		}
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "fine\n") })
	mux.HandleFunc("/news", func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		wait := happened
		mutex.Unlock()
		select {
		case <-wait:
			_, _ = io.WriteString(w, "something happened\n")
		case <-r.Context().Done():
		}
	})
	return mux
}
