// SPDX-License-Identifier: Apache-2.0

// Command alvin is a service of remote calls (gRPC) before a data store (Redis).
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"story/alvin/rpc"
)

type alvin struct{ store *redis.Client }

func (a alvin) Get(ctx context.Context, key *wrapperspb.StringValue) (*wrapperspb.BytesValue, error) {
	value, err := a.store.Get(ctx, key.Value).Bytes()
	if err != nil {
		return nil, err
	}
	return wrapperspb.Bytes(value), nil
}

// listener accepts connections with or without TCP_NODELAY.
type listener struct {
	net.Listener
	noDelay bool
}

func (l listener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return connection, rpc.SetNoDelay(connection, l.noDelay)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:19401", "address of the service")
	store := flag.String("store", "127.0.0.1:6379", "address of the store")
	noDelay := flag.Bool("nodelay", true, "set TCP_NODELAY on its connections")
	buffer := flag.Int("write-buffer", 32<<10, "bytes of an answer that are gathered before they are written; 0 = a write for each frame")
	flag.Parse()
	socket, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal("alvin: ", err)
	}
	server := grpc.NewServer(grpc.WriteBufferSize(*buffer))
	server.RegisterService(&rpc.Service, alvin{redis.NewClient(&redis.Options{Addr: *store})})
	log.Fatal("alvin: ", server.Serve(listener{socket, *noDelay}))
}
