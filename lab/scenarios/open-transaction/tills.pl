# SPDX-License-Identifier: Apache-2.0
# A prefork web service: `tills.pl PORT WORKERS DATABASE USER PAUSE_MS`. Each sale is booked in the one row of the day's total, and
# the receipt is printed, which takes a while, before that is committed.
use strict;
use warnings;
use DBI;
use IO::Socket::INET;
use Socket qw(IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(usleep);

my ($port, $workers, $database, $user, $pause_ms) = @ARGV;
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
    my $db = DBI->connect($database, $user, '', { RaiseError => 1, AutoCommit => 1 });
    my $book = $db->prepare('UPDATE total SET cents = cents + 1');
    while (my $client = $listener->accept) {
        $client->setsockopt(IPPROTO_TCP, TCP_NODELAY, 1);
        my $asked = '';
        while (sysread($client, $asked, 65536, length $asked)) {
            last if $asked =~ /\r\n\r\n/;
        }
        $db->begin_work;
        $book->execute;
        usleep($pause_ms * 1000) if $pause_ms;
        $db->commit;
        syswrite($client, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\npaid\n");
        close $client;
    }
    exit;
}
