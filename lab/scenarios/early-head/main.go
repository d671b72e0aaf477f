// SPDX-License-Identifier: Apache-2.0

// Command gallery sends the head of each page at once, so that the browser shows something, and the page when its store has answered.
// Arguments: port, port of the store.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		answer, err := client.Get("http://127.0.0.1:" + os.Args[2] + "/")
		if err != nil {
			log.Print(err)
			return
		}
		defer answer.Body.Close()
		_, _ = io.Copy(w, answer.Body)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
