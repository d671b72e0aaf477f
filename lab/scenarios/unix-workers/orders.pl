# SPDX-License-Identifier: Apache-2.0
# An application behind a web server, as with FastCGI or WSGI: `orders.pl SOCKET STORE WORKERS`. So many processes take a connection
# each from a Unix socket, ask a store over a connection of their own, answer and close.
use strict;
use warnings;
use IO::Socket::INET;
use IO::Socket::UNIX;

my ($path, $port, $workers) = @ARGV;
$SIG{PIPE} = "IGNORE";    # a client that has left
my $listener = IO::Socket::UNIX->new(Local => $path, Listen => 128) or die "$path: $!";

sub ask {
    my ($store) = @_;
    $$store //= IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die "store: $!";
    $$store->syswrite("GET /orders HTTP/1.1\r\nHost: store\r\n\r\n");
    $$store->sysread(my $answer, 4096) or die "store: gone";
}

sub work {
    my $store;
    while (my $client = $listener->accept) {
        $client->sysread(my $request, 4096) or next;
        ask(\$store);
        $client->syswrite("HTTP/1.0 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\norder\n");
        close $client;
    }
}

for (1 .. $workers) {
    my $pid = fork // die "fork: $!";
    if ($pid == 0) { work(); exit }
}
wait;
