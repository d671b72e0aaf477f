// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** Keeps the sessions of all users; each request renews one of them and names some others. */
public class Sessions {
    private static final int NAMED = 30;

    private record Session(String user, long[] visits) {
        Session(int user) {
            this("user " + user, new long[40]);
        }
    }

    private final AtomicReferenceArray<Session> sessions;

    Sessions(int users) {
        sessions = new AtomicReferenceArray<>(users);
        for (int user = 0; user < users; user++) {
            sessions.set(user, new Session(user));
        }
    }

    private String renew() {
        var random = ThreadLocalRandom.current();
        int renewed = random.nextInt(sessions.length());
        sessions.set(renewed, new Session(renewed));
        var names = new StringBuilder();
        for (int i = 0; i < NAMED; i++) {
            names.append(sessions.get(random.nextInt(sessions.length())).user()).append('\n');
        }
        return names.toString();
    }

    /** Arguments: port, users. */
    public static void main(String[] args) throws Exception {
        var sessions = new Sessions(Integer.parseInt(args[1]));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 128);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            byte[] body = sessions.renew().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
    }
}
