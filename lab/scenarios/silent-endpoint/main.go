// SPDX-License-Identifier: Apache-2.0

// Command quotes is a service of which one page asks a store, on a connection of its own each time, and waits for as long as that
// takes; the others ask nobody.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
)

func main() {
	port, store := os.Args[1], "127.0.0.1:"+os.Args[2]
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	http.HandleFunc("/quote", func(w http.ResponseWriter, _ *http.Request) {
		quote, err := ask(store)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprint(w, quote)
	})
	log.Fatal("quotes: ", http.ListenAndServe("127.0.0.1:"+port, nil))
}

func ask(store string) (string, error) {
	line, err := net.Dial("tcp", store)
	if err != nil {
		return "", err
	}
	defer line.Close()
	fmt.Fprintf(line, "GET /quote HTTP/1.0\r\nHost: store\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(line), nil)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}
