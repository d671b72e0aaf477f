# SPDX-License-Identifier: Apache-2.0
# A web service with one thread that accepts and a pool of so many that serve, a connection at a time until its client closes it:
# `board.pl PORT THREADS`.
use strict;
use warnings;
use threads;
use IO::Handle;
use IO::Socket::INET;
use POSIX ();
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Thread::Queue;

my ($port, $threads) = @ARGV;
my $connections = Thread::Queue->new();
$SIG{PIPE} = 'IGNORE';
threads->create(\&serve)->detach for 1 .. $threads;
my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 128, ReuseAddr => 1, Proto => 'tcp',
) or die "failed to listen at port $port: $!\n";
while (my $client = $listener->accept) {
    $client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
    # A handle belongs to its thread; the descriptor goes on to another one.
    $connections->enqueue(POSIX::dup(fileno $client));
}

sub serve {
    while (defined(my $fd = $connections->dequeue)) {
        open my $client, '+<&=', $fd or next;
        my $asked = '';
        while (sysread($client, $asked, 65536, length $asked)) {
            next unless $asked =~ s/^.*?\r\n\r\n//s;
            syswrite($client, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nboard\n");
        }
        close $client;
    }
}
