// SPDX-License-Identifier: Apache-2.0

// Package rpc is what client and server of Alvin agree on: one remote call, and how a connection is set up.
package rpc

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Get is the name of the call: a key is asked for, and its value comes back.
const Get = "/alvin.Alvin/Get"

// Alvin answers the call.
type Alvin interface {
	Get(ctx context.Context, key *wrapperspb.StringValue) (*wrapperspb.BytesValue, error)
}

// Service describes it, as a generator of code would.
var Service = grpc.ServiceDesc{
	ServiceName: "alvin.Alvin",
	HandlerType: (*Alvin)(nil),
	Methods: []grpc.MethodDesc{{
		MethodName: "Get",
		Handler: func(alvin any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			key := new(wrapperspb.StringValue)
			if err := decode(key); err != nil {
				return nil, err
			}
			return alvin.(Alvin).Get(ctx, key)
		},
	}},
}

// SetNoDelay sets TCP_NODELAY, which Go sets on each connection, or takes it away: then the system holds a small write back
// for as long as an earlier one is not acknowledged, as it does unless a library asks it not to.
func SetNoDelay(connection net.Conn, on bool) error {
	return connection.(*net.TCPConn).SetNoDelay(on)
}
