#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A guest book: processes that each take a connection, lock a file, spend so many milliseconds with it and answer. The
# file is one for all of them, or one for each. Arguments: port, processes, milliseconds, `one` or `each`.
use strict;
use warnings;
use Fcntl qw(:flock);
use IO::Socket::INET;
use Time::HiRes qw(usleep);

my ( $port, $processes, $ms, $files ) = @ARGV;
my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1',
    LocalPort => $port,
    Listen    => 64,
    ReuseAddr => 1
) or die "guestbook: $!";

sub sign {
    my ($name) = @_;
    open( my $book, '>>', $name ) or die "guestbook: $name: $!";
    flock( $book, LOCK_EX ) or die "guestbook: flock: $!";
    usleep( $ms * 1000 );
    close($book);
}

sub work {
    my ($name) = @_;
    while ( my $client = $listener->accept ) {
        while ( defined( my $line = <$client> ) ) {
            next if $line ne "\r\n";    # the request ends with an empty line
            sign($name);
            print $client "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nthanks\n";
            $client->flush;
        }
    }
}

for my $number ( 2 .. $processes ) {
    my $pid = fork // die "guestbook: $!";
    if ( $pid == 0 ) {
        work( $files eq 'one' ? 'book' : "book.$number" );
        exit;
    }
}
work( $files eq 'one' ? 'book' : 'book.1' );
