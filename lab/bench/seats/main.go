// SPDX-License-Identifier: Apache-2.0

// Command seats answers requests each of which takes one of a few seats for a while, asleep.
// Arguments: port, seats, ms.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

func number(at int) int {
	number, err := strconv.Atoi(os.Args[at])
	if err != nil {
		log.Fatal(err)
	}
	return number
}

func main() {
	seats, takes := make(chan struct{}, number(2)), time.Duration(number(3))*time.Millisecond
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		seats <- struct{}{}
		time.Sleep(takes)
		<-seats
		fmt.Fprintln(w, "seen to")
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
