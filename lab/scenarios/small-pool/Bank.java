// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ArrayBlockingQueue;

/** Answers with a balance, which it asks a store for. Each client has a thread; the connections are shared. */
public class Bank {
    /** A connection, to a client or to the store, with as little of HTTP as they need. */
    private static class Line {
        private final Socket socket;
        private final BufferedReader in;

        Line(Socket socket) throws IOException {
            socket.setTcpNoDelay(true);
            this.socket = socket;
            in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
        }

        /** Reads up to the empty line; false = the other has closed. */
        boolean head() throws IOException {
            String line;
            do {
                line = in.readLine();
            } while (line != null && !line.isEmpty());
            return line != null;
        }

        void say(String text) throws IOException {
            socket.getOutputStream().write(text.getBytes(StandardCharsets.US_ASCII));
        }
    }

    private final ArrayBlockingQueue<Line> pool;

    Bank(int store, int connections) throws IOException {
        pool = new ArrayBlockingQueue<>(connections);
        for (int i = 0; i < connections; i++) {
            pool.add(new Line(new Socket(InetAddress.getLoopbackAddress(), store)));
        }
    }

    private String balance() throws IOException, InterruptedException {
        Line store = pool.take();
        try {
            store.say("GET /balance HTTP/1.1\r\nHost: store\r\n\r\n");
            store.head();
            return store.in.readLine();
        } finally {
            pool.put(store);
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            var client = new Line(socket);
            while (client.head()) {
                String body = balance();
                client.say("HTTP/1.1 200 OK\r\nContent-Length: " + body.length() + "\r\n\r\n" + body);
            }
        } catch (IOException e) {
            System.err.println("bank: " + e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Arguments: own port, the store's, connections to it. */
    public static void main(String[] args) throws IOException {
        var bank = new Bank(Integer.parseInt(args[1]), Integer.parseInt(args[2]));
        var listener = new ServerSocket(Integer.parseInt(args[0]), 128, InetAddress.getLoopbackAddress());
        for (;;) {
            Socket socket = listener.accept();
            new Thread(() -> bank.serve(socket), "client").start();
        }
    }
}
