// SPDX-License-Identifier: Apache-2.0

// Command front is a web service that asks Alvin: GET /KEY answers with the value. It has one connection to Alvin, which all
// requests share.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"story/alvin/rpc"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:19400", "address of the service")
	alvin := flag.String("alvin", "127.0.0.1:19401", "address of Alvin")
	noDelay := flag.Bool("nodelay", true, "set TCP_NODELAY on the connection to Alvin")
	buffer := flag.Int("write-buffer", 32<<10, "bytes of a call that are gathered before they are written; 0 = a write for each frame")
	flag.Parse()
	dial := func(ctx context.Context, address string) (net.Conn, error) {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return connection, rpc.SetNoDelay(connection, *noDelay)
	}
	client, err := grpc.NewClient("passthrough:///"+*alvin, grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithWriteBufferSize(*buffer))
	if err != nil {
		log.Fatal("front: ", err)
	}
	http.HandleFunc("/", func(answer http.ResponseWriter, request *http.Request) {
		value := new(wrapperspb.BytesValue)
		if err := client.Invoke(request.Context(), rpc.Get, wrapperspb.String(request.URL.Path[1:]), value); err != nil {
			http.Error(answer, err.Error(), http.StatusBadGateway)
			return
		}
		_, _ = answer.Write(value.Value)
	})
	log.Fatal("front: ", http.ListenAndServe(*listen, nil))
}
