// SPDX-License-Identifier: Apache-2.0

// Command webload asks a web service for one page at a steady rate until it is killed.
//
// Each connection has its own plan of start times. A late answer makes the next request start at
// once, so the rate holds as long as the service can keep up with it on average.
package main

import (
	"flag"
	"io"
	"log"
	"net/http"
	"time"
)

func main() {
	url := flag.String("url", "http://127.0.0.1:8080/", "page to ask for")
	rate := flag.Float64("rate", 100, "requests a second, over all connections")
	connections := flag.Int("connections", 8, "connections")
	flag.Parse()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: *connections}}
	gap := time.Duration(float64(*connections) / *rate * float64(time.Second))
	for i := range *connections {
		go ask(client, *url, gap, gap*time.Duration(i)/time.Duration(*connections))
	}
	select {}
}

func ask(client *http.Client, url string, gap, offset time.Duration) {
	next := time.Now().Add(offset)
	for {
		time.Sleep(time.Until(next))
		response, err := client.Get(url)
		if err != nil {
			log.Fatal("webload: ", err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		next = next.Add(gap)
		// A service that cannot keep up must not meet the whole backlog once it can.
		if behind := time.Now().Add(-time.Second); next.Before(behind) {
			next = behind
		}
	}
}
