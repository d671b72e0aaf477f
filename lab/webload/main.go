// SPDX-License-Identifier: Apache-2.0

// Command webload asks a web service for one page at a steady rate until it is killed.
//
// Each connection has its own plan of start times. A late answer makes the next request start at
// once, so the rate holds as long as the service can keep up with it on average. A plan takes any
// connection that is idle; with -own each keeps one for itself. With -reconnect each request makes
// a connection, and one that fails is made up for by the next. Whose certificate it is nobody asks.
package main

import (
	"crypto/tls"
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
	own := flag.Bool("own", false, "keep all connections open, each for its own requests")
	reconnect := flag.Bool("reconnect", false, "a connection for each request, and go on after errors")
	timeout := flag.Duration("timeout", 0, "give a request up after so long; 0 = never")
	flag.Parse()
	makeClient := func() *http.Client {
		return &http.Client{Timeout: *timeout, Transport: &http.Transport{
			MaxIdleConnsPerHost: *connections,
			DisableKeepAlives:   *reconnect,
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		}}
	}
	client := makeClient()
	gap := time.Duration(float64(*connections) / *rate * float64(time.Second))
	for i := range *connections {
		if *own {
			client = makeClient()
		}
		go ask(client, *url, *reconnect, gap, gap*time.Duration(i)/time.Duration(*connections))
	}
	select {}
}

func ask(client *http.Client, url string, patient bool, gap, offset time.Duration) {
	next := time.Now().Add(offset)
	for {
		time.Sleep(time.Until(next))
		if err := get(client, url); err != nil && !patient {
			log.Fatal("webload: ", err)
		}
		next = next.Add(gap)
		// A service that cannot keep up must not meet the whole backlog once it can.
		if behind := time.Now().Add(-time.Second); next.Before(behind) {
			next = behind
		}
	}
}

func get(client *http.Client, url string) error {
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Body.Close()
}
