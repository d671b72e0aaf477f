// SPDX-License-Identifier: Apache-2.0

// Command thumbs draws a small picture for each request and throws all of it away afterwards. Its
// heap is a few megabytes, so the collector runs every few requests.
package main

import (
	"bytes"
	"flag"
	"image"
	"image/color"
	"image/png"
	"log"
	"net/http"
	"strings"
)

func draw(size int) ([]byte, error) {
	picture := image.NewRGBA(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			picture.Set(x, y, color.RGBA{uint8(x), uint8(y), uint8(x ^ y), 255})
		}
	}
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	err := encoder.Encode(&out, picture)
	return out.Bytes(), err
}

func caption(words int) string {
	var parts []string
	for i := range words {
		parts = append(parts, strings.Repeat(string(rune('a'+i%26)), 8))
	}
	return strings.Join(parts, " ")
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	flag.Parse()
	http.HandleFunc("/thumb", func(w http.ResponseWriter, _ *http.Request) {
		picture, err := draw(64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("X-Caption", caption(100))
		_, _ = w.Write(picture)
	})
	log.Fatal("thumbs: ", http.ListenAndServe(*listen, nil))
}
