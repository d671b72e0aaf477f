// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

/** Takes photos that are sent to it, and answers other requests at once, in a pool of so many threads. */
public class Photos {
    private static void take(HttpExchange exchange) throws IOException {
        try (exchange) {
            int size = exchange.getRequestBody().readAllBytes().length;
            byte[] answer = (size + " bytes\n").getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
        }
    }

    /** Arguments: port, threads. */
    public static void main(String[] args) throws IOException {
        var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0]));
        var server = HttpServer.create(address, 128);
        server.setExecutor(Executors.newFixedThreadPool(Integer.parseInt(args[1])));
        server.createContext("/", Photos::take);
        server.start();
    }
}
