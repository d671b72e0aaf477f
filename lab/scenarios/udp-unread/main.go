// SPDX-License-Identifier: Apache-2.0

// Takes readings as datagrams: `udp-unread PORT DELAY_US`. It takes so long over each of them that its small buffer
// overflows; with a delay of 0 it does not. `udp-unread send PORT RATE` sends so many a second.
package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return n
}

func receive(port int, delay time.Duration) error {
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return err
	}
	if err := socket.SetReadBuffer(16 << 10); err != nil {
		return err
	}
	reading := make([]byte, 2048)
	for {
		if _, _, err := socket.ReadFrom(reading); err != nil {
			return err
		}
		if delay > 0 {
			time.Sleep(delay)
		}
	}
}

func send(port, rate int) error {
	socket, err := net.Dial("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	reading := make([]byte, 200)
	for range time.Tick(10 * time.Millisecond) {
		for range rate / 100 {
			if _, err := socket.Write(reading); err != nil {
				return err
			}
		}
	}
	return nil
}

func main() {
	if len(os.Args) < 3 {
		os.Exit(2)
	}
	var err error
	if os.Args[1] == "send" {
		err = send(number(os.Args[2]), number(os.Args[3]))
	} else {
		err = receive(number(os.Args[1]), time.Duration(number(os.Args[2]))*time.Microsecond)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
