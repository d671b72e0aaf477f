// SPDX-License-Identifier: Apache-2.0
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.LinkedBlockingQueue;

/** One thread accepts and puts connections into a queue; a few clerks take them from there, one request each. */
public class Desk {
    private static final LinkedBlockingQueue<Socket> QUEUE = new LinkedBlockingQueue<>();

    private static void serve(Socket socket, int millis) throws IOException, InterruptedException {
        try (socket) {
            socket.setTcpNoDelay(true);
            var in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
            for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
                // the request ends with an empty line
            }
            if (millis > 0) {
                Thread.sleep(millis);
            }
            String answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone";
            socket.getOutputStream().write(answer.getBytes(StandardCharsets.US_ASCII));
        }
    }

    private static void clerk(int millis) {
        for (;;) {
            try {
                serve(QUEUE.take(), millis);
            } catch (IOException e) {
                System.err.println("desk: " + e);
            } catch (InterruptedException e) {
                return;
            }
        }
    }

    /** Arguments: port, clerks, milliseconds that each sleeps for a request. */
    public static void main(String[] args) throws IOException, InterruptedException {
        int millis = Integer.parseInt(args[2]);
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            new Thread(() -> clerk(millis), "clerk").start();
        }
        var listener = new ServerSocket(Integer.parseInt(args[0]), 128, InetAddress.getLoopbackAddress());
        for (;;) {
            QUEUE.put(listener.accept());
        }
    }
}
