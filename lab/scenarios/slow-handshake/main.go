// SPDX-License-Identifier: Apache-2.0

// Command vault serves over TLS, and looks its certificate up before each handshake: `vault PORT DELAY_MS`.
package main

import (
	"crypto/tls"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	delay, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal("vault: ", err)
	}
	certificate, err := tls.LoadX509KeyPair("cert.pem", "key.pem")
	if err != nil {
		log.Fatal("vault: ", err)
	}
	lookUp := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		time.Sleep(time.Duration(delay) * time.Millisecond)
		return &certificate, nil
	}
	server := &http.Server{
		Addr:      "127.0.0.1:" + os.Args[1],
		TLSConfig: &tls.Config{GetCertificate: lookUp},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, "here")
		}),
	}
	log.Fatal("vault: ", server.ListenAndServeTLS("", ""))
}
