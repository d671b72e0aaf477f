# SPDX-License-Identifier: Apache-2.0
# Workers that take connections, one request each. After so many, a worker reads at an address where nothing is, in the middle of a
# request; or it ends of itself after an answer. Its parent starts another one.
# Arguments: port, requests of a worker, `crash` or `leave`.
use strict;
use warnings;
use IO::Socket::INET;

my ($port, $requests, $mode) = @ARGV;
my $listener = IO::Socket::INET->new(
    LocalAddr => "127.0.0.1:$port", Listen => 128, ReuseAddr => 1
) or die "cannot listen: $!";

sub work {
    for my $nth (1 .. $requests) {
        my $client = $listener->accept or next;
        while (defined(my $line = <$client>)) {
            last if $line eq "\r\n";
        }
        my $sum = 0;
        $sum += $_ for 1 .. 2000;
        $sum = unpack "p", pack "J", 1 if $mode eq "crash" && $nth == $requests;
        print $client "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " . length($sum) . "\r\n\r\n$sum";
        close $client;
    }
    exit 0;
}

sub start {
    my $pid = fork // die "cannot fork: $!";
    work() if $pid == 0;
}

start() for 1 .. 4;
start() while wait > 0;
