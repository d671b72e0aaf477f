# SPDX-License-Identifier: Apache-2.0
# Workers that have a listener of their own each, all with one address, and a helper beside them that looks after files. What the
# helper was born with is one listener too many, of a worker that is not there any more: `keep` lets it keep that, `close` does not.
# Arguments: port, workers, `keep` or `close`.
use strict;
use warnings;
use IO::Socket::INET;

my ($port, $workers, $mode) = @ARGV;

sub listener {
    return IO::Socket::INET->new(LocalAddr => "127.0.0.1:$port", Listen => 4000, ReusePort => 1) // die "cannot listen: $!";
}

sub work {
    my ($listener) = @_;
    while (1) {
        my $client = $listener->accept or next;
        while (defined(my $line = <$client>)) {
            last if $line eq "\r\n";
        }
        my $sum = 0;
        $sum += $_ for 1 .. 3000;
        print $client "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " . length($sum) . "\r\n\r\n$sum";
        close $client;
    }
}

sub child {
    my ($code) = @_;
    my $pid = fork // die "cannot fork: $!";
    return if $pid;
    $code->();
    exit 0;
}

{
    my $left = listener();
    child(sub {
        close $left if $mode eq "close";
        $0 = "rotate";
        sleep 1 while 1;
    });
    close $left;
}
for (1 .. $workers) {
    my $own = listener();
    child(sub { work($own) });
    close $own;
}
1 while wait > 0;
