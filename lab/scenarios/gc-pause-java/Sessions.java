// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicReferenceArray;

/** Keeps the sessions of all users; each request renews one of them and names some others. */
public class Sessions {
    private static final int NAMED = 30;

    /** So many of them have a kilobyte. */
    private static final int WORDS = 17;

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

    /** Words for a draft of the answer that nobody needs for long. */
    private static int draft(int kilobytes) {
        var words = new ArrayList<String>();
        for (int word = 0; word < kilobytes * WORDS; word++) {
            words.add("word " + word);
        }
        return words.size();
    }

    /** Arguments: port, users, and kilobytes of drafts for each request, if there are any. */
    public static void main(String[] args) throws Exception {
        var sessions = new Sessions(Integer.parseInt(args[1]));
        int kilobytes = args.length > 2 ? Integer.parseInt(args[2]) : 0;
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 128);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            draft(kilobytes);
            byte[] body = sessions.renew().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        });
        server.start();
    }
}
