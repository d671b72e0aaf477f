# SPDX-License-Identifier: Apache-2.0
# A web service with a thread for each of so many clients, which give what they are asked to clerks; each of those asks a store, for one
# after the other: `office.pl PORT STORE CLIENTS CLERKS`.
use strict;
use warnings;
use threads;
use IO::Socket::INET;
use POSIX ();
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Thread::Queue;

my ($port, $store, $clients, $clerks) = @ARGV;
my ($connections, $desk) = (Thread::Queue->new(), Thread::Queue->new());
my @done = map { Thread::Queue->new() } 1 .. $clients;
$SIG{PIPE} = 'IGNORE';
threads->create(\&ask)->detach for 1 .. $clerks;
threads->create(\&serve, $_)->detach for 0 .. $clients - 1;
my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 128, ReuseAddr => 1, Proto => 'tcp',
) or die "failed to listen at port $port: $!\n";
while (my $client = $listener->accept) {
    $client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
    # A handle belongs to its thread; the descriptor goes on to another one.
    $connections->enqueue(POSIX::dup(fileno $client));
}

sub serve {
    my ($number) = @_;
    while (defined(my $fd = $connections->dequeue)) {
        open my $client, '+<&=', $fd or next;
        my $asked = '';
        while (sysread($client, $asked, 65536, length $asked)) {
            next unless $asked =~ s/^.*?\r\n\r\n//s;
            $desk->enqueue($number);
            $done[$number]->dequeue;
            syswrite($client, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\noffice\n");
        }
        close $client;
    }
}

sub ask {
    my $peer = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $store, Proto => 'tcp') or die "no store: $!\n";
    $peer->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
    while (defined(my $number = $desk->dequeue)) {
        syswrite($peer, "GET / HTTP/1.1\r\nHost: store\r\n\r\n");
        my $told = '';
        until ($told =~ /\r\n\r\n/) { sysread($peer, $told, 65536, length $told) or die "the store hung up\n" }
        my ($length) = $told =~ /content-length: *(\d+)/i;
        my $all = index($told, "\r\n\r\n") + 4 + $length;
        while (length $told < $all) { sysread($peer, $told, 65536, length $told) or die "the store hung up\n" }
        $done[$number]->enqueue(1);
    }
}
