// SPDX-License-Identifier: Apache-2.0

// Command tariffs answers from a table that many read at once, and that is read anew now and then: nobody reads it meanwhile.
// Arguments: port, ms that it takes.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	every  = 3 * time.Second
	lookUp = 2 * time.Millisecond
)

type table struct {
	sync.RWMutex
	version int
}

func (t *table) renew(takes time.Duration) {
	for range time.Tick(every) {
		t.Lock()
		time.Sleep(takes)
		t.version++
		t.Unlock()
	}
}

func (t *table) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	t.RLock()
	defer t.RUnlock()
	time.Sleep(lookUp)
	fmt.Fprintln(w, t.version)
}

func main() {
	takes, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	var tariffs table
	go tariffs.renew(time.Duration(takes) * time.Millisecond)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], &tariffs))
}
