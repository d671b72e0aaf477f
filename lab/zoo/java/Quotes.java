// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;

/** Quotes of fifty shares on port 8080, by the kind of threads that the argument names. */
public final class Quotes {
    private Quotes() {}

    public static void main(String[] args) throws Exception {
        boolean forks = args[0].equals("fork-join");
        ExecutorService threads =
                switch (args[0]) {
                    case "pool" -> Executors.newFixedThreadPool(50);
                    case "fork-join" -> new ForkJoinPool(8);
                    // By reflection: the compiler may be of a JDK that has none.
                    case "virtual" ->
                            (ExecutorService) Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
                    default -> throw new IllegalArgumentException(args[0]);
                };
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 8080), 128);
        server.createContext("/quotes", exchange -> answer(exchange, forks));
        server.setExecutor(threads);
        server.start();
    }

    private static void answer(HttpExchange exchange, boolean forks) throws IOException {
        exchange.getRequestBody().readAllBytes();
        String text;
        if (forks) {
            ForkJoinTask<String> second = ForkJoinTask.adapt(() -> part(25, 50)).fork();
            text = part(0, 25) + second.join();
        } else {
            text = part(0, 25) + part(25, 50);
        }
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
    }

    private static String part(int from, int to) {
        StringBuilder text = new StringBuilder();
        for (int share = from; share < to; share++) {
            text.append(String.format("share %d: %.2f%n", share, share * 17.0 / 3));
        }
        return text.toString();
    }
}
