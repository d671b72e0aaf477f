# SPDX-License-Identifier: Apache-2.0
# A web service that starts a process for each connection: `porter.pl PORT NAP`. Before it does, it sleeps so many seconds, as one
# does that puts off whom it does not know; 0 = it does not.
use strict;
use warnings;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(sleep);

my ($port, $nap) = @ARGV;
my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 128, ReuseAddr => 1, Proto => 'tcp',
) or die "failed to listen at port $port: $!\n";
$SIG{CHLD} = 'IGNORE';
while (1) {
    my $client = $listener->accept or next;
    sleep($nap) if $nap;
    my $pid = fork() // die "failed to start a process: $!\n";
    serve($client) unless $pid;
    close $client;
}

sub serve {
    my ($client) = @_;
    $client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
    my $asked = '';
    while (sysread($client, $asked, 65536, length $asked)) {
        next unless $asked =~ /\r\n\r\n/;
        syswrite($client, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nporter\n");
        last;
    }
    exit;
}
