// SPDX-License-Identifier: Apache-2.0

// Command uneven answers after 5 ms, and every twenty-fifth request after 25: the last part of its path is its number.
// Its argument is the port.
package main

import (
	"io"
	"log"
	"net/http"
	"os"
	"path"
	"strconv"
	"time"
)

func main() {
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(answer)))
}

func answer(w http.ResponseWriter, r *http.Request) {
	number, err := strconv.Atoi(path.Base(r.URL.Path))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	wait := 5 * time.Millisecond
	if number%25 == 0 {
		wait *= 5
	}
	time.Sleep(wait)
	_, _ = io.WriteString(w, "done")
}
