#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A teller: processes that each take a connection and ask Redis for each request, over a connection of their own. The
# question goes out in so many writes, on a socket with the default options. Arguments: port, Redis' port, processes, writes.
use strict;
use warnings;
use IO::Socket::INET;

my ( $port, $store_port, $processes, $writes ) = @ARGV;
my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1',
    LocalPort => $port,
    Listen    => 64,
    ReuseAddr => 1
) or die "teller: $!";
my @question = ( "*2\r\n\$3\r\nGET\r\n", "\$7\r\naccount\r\n" );
@question = ( join '', @question ) if $writes == 1;

sub ask {
    my ($store) = @_;
    for my $part (@question) {
        defined( syswrite $store, $part ) or die "teller: Redis: $!";
    }
    sysread( $store, my $answer, 4096 ) or die "teller: Redis went away";
}

sub work {
    my $store = IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $store_port ) or die "teller: Redis: $!";
    while ( my $client = $listener->accept ) {
        while ( defined( my $line = <$client> ) ) {
            next if $line ne "\r\n";    # the request ends with an empty line
            ask($store);
            syswrite $client, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntold\n";
        }
    }
}

for ( 2 .. $processes ) {
    my $pid = fork // die "teller: $!";
    if ( $pid == 0 ) {
        work();
        exit;
    }
}
work();
