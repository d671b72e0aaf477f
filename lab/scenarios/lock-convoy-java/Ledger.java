// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** Books each request in a ledger that one lock guards, and asks an auditor: while it holds the lock, or before it. */
public class Ledger {
    private static final int AUDIT_MS = 2;

    private final long[] balances = new long[4096];
    private final boolean auditLocked;

    Ledger(boolean auditLocked) {
        this.auditLocked = auditLocked;
    }

    /** The auditor takes its time. */
    private static void audit() throws InterruptedException {
        Thread.sleep(AUDIT_MS);
    }

    private long book(int account) throws InterruptedException {
        if (!auditLocked) {
            audit();
        }
        synchronized (balances) {
            long balance = ++balances[account % balances.length];
            if (auditLocked) {
                audit();
            }
            return balance;
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            var in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            int account = socket.getPort();
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (!line.isEmpty()) {
                    continue; // the request ends with an empty line
                }
                String body = Long.toString(book(++account));
                String answer = "HTTP/1.1 200 OK\r\nContent-Length: " + body.length() + "\r\n\r\n" + body;
                socket.getOutputStream().write(answer.getBytes(StandardCharsets.US_ASCII));
            }
        } catch (IOException e) {
            System.err.println("ledger: " + e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Arguments: port, whether the auditor is asked with the lock held: `locked` or `unlocked`. */
    public static void main(String[] args) throws IOException {
        var ledger = new Ledger(args[1].equals("locked"));
        var listener = new ServerSocket(Integer.parseInt(args[0]), 128, InetAddress.getLoopbackAddress());
        for (;;) {
            Socket socket = listener.accept();
            new Thread(() -> ledger.serve(socket), "client").start();
        }
    }
}
