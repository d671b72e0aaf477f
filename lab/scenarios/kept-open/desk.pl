# SPDX-License-Identifier: Apache-2.0
# A prefork web service: `desk.pl PORT WORKERS keeps|closes`. Each worker serves one connection at a time; with `keeps` until its
# client closes it.
use strict;
use warnings;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP TCP_NODELAY);

my ($port, $workers, $mode) = @ARGV;
my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 128, ReuseAddr => 1, Proto => 'tcp',
) or die "failed to listen at port $port: $!\n";
$SIG{PIPE} = 'IGNORE';
for (1 .. $workers) {
    my $pid = fork() // die "failed to start a worker: $!\n";
    serve() unless $pid;
}
wait() for 1 .. $workers;

sub serve {
    while (my $client = $listener->accept) {
        $client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
        my $asked = '';
        while (sysread($client, $asked, 65536, length $asked)) {
            next unless $asked =~ s/^.*?\r\n\r\n//s;
            syswrite($client, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ndesk\n");
            last if $mode eq 'closes';
        }
        close $client;
    }
    exit;
}
