vcl 4.1;

backend pages {
  .host = "127.0.0.1";
  .port = "8081";
}
