#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# Clients that each post over one connection, again and again: first the header, then the body. Arguments: port, clients, ms of
# thought between two requests, and ms between header and body: 0 = none, on a socket with the default options; of more, the
# socket has TCP_NODELAY.
use strict;
use warnings;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP TCP_NODELAY);

my ( $port, $clients, $thought, $pause ) = @ARGV;
my $body   = 'a short message';
my $header = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: " . length($body) . "\r\n\r\n";

sub answer {
    my ($server) = @_;
    my $got = '';
    while ( $got !~ /\U$body/ ) {
        sysread( $server, $got, 4096, length $got ) or die 'post: the server went away';
    }
}

sub work {
    my $server = IO::Socket::INET->new( PeerAddr => '127.0.0.1', PeerPort => $port ) or die "post: $!";
    setsockopt $server, IPPROTO_TCP, TCP_NODELAY, 1 if $pause;
    while (1) {
        syswrite $server, $header;
        select undef, undef, undef, $pause / 1000 if $pause;
        syswrite $server, $body;
        answer($server);
        select undef, undef, undef, $thought / 1000;
    }
}

for ( 2 .. $clients ) {
    my $pid = fork // die "post: $!";
    work() if $pid == 0;
}
work();
