"""A TCP relay that remembers whether a text went by: what a client sends without waiting for the answer is visible only on the wire."""

import socket
import threading


class Tap:
    """Relays a free loopback port to `port`; a context manager. `seen` is set once `text` was sent to the server."""

    def __init__(self, port: int, text: bytes):
        self.server, self.text, self.seen = port, text, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets: list[socket.socket] = []

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        for one in [self.listener, *self.sockets]:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def accept(self) -> None:
        try:
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server))
                self.sockets += [client, server]
                threading.Thread(target=self.relay, args=(client, server, self.text), daemon=True).start()
                threading.Thread(target=self.relay, args=(server, client, None), daemon=True).start()
        except OSError:
            return

    def relay(self, source: socket.socket, sink: socket.socket, text: bytes | None) -> None:
        before = b""
        try:
            while data := source.recv(1 << 18):
                if text is not None:
                    window = before + data
                    if text in window:
                        self.seen.set()
                    before = window[-len(text) :]
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return
