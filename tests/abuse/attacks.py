"""What rude clients do, as a process of its own: `python -m tests.abuse.attacks NAME PORT SECONDS`, on loopback.

Prints what it found as JSON. It comes from another address than the honest clients, and ends after its seconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.frames import CLOSE, CONTINUATION, PING, PONG, TEXT, UPGRADE, frame

ADDRESS = "127.0.0.2"
Found = dict[str, Any]


def message(**fields: Any) -> bytes:
    return frame(TEXT, json.dumps(fields, ensure_ascii=False).encode())


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(ADDRESS, 0))


def upgraded(port: int, handshake: bytes = UPGRADE) -> socket.socket:
    sock = connected(port)
    sock.sendall(handshake)
    answer_to_request(sock)
    return sock


def answer_to_request(sock: socket.socket) -> str:
    """The status; what follows its head is left."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += sock.recv(1)
    return head[len("HTTP/1.1 ") :][:3].decode("latin-1")


def received(sock: socket.socket) -> Iterator[tuple[int, bytes]]:
    """Frames, until the other side closes."""
    file = sock.makefile("rb")
    while len(head := file.read(2)) == 2:
        length = head[1]
        if length == 126:
            (length,) = struct.unpack("!H", file.read(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", file.read(8))
        yield head[0] & 15, file.read(length)


def drained(sock: socket.socket) -> bytes:
    """What has come."""
    found = b""
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while new := sock.recv(65_536):
            found += new
    sock.setblocking(True)
    return found


def until(seconds: float) -> Iterator[float]:
    """Seconds gone by, until they are over."""
    began_s = time.monotonic()
    while (gone_s := time.monotonic() - began_s) < seconds:
        yield gone_s


def push(sock: socket.socket, data: bytes, seconds: float, *, reads: bool = True) -> Found:
    """Send the same again and again. Tells after how long the gateway closed, and how its answer began."""
    sock.setblocking(False)
    sent, view, answer = 0, memoryview(data), b""
    for gone_s in until(seconds):
        ready, writable, _ = select.select([sock] if reads else [], [sock], [], 0.1)
        try:
            if ready:
                answer += (new := sock.recv(65_536))
                if not new:
                    raise ConnectionResetError
            if writable:
                count = sock.send(view)
                sent, view = sent + count, view[count:] or memoryview(data)
        except ConnectionError:
            # Where not everything was read, the connection is reset, and the answer may be lost.
            return {"closed after s": round(gone_s, 1), "sent": sent, "answer": answer[:40].decode("latin-1")}
    return {"closed after s": None, "sent": sent, "answer": answer[:40].decode("latin-1")}


def flood(data: bytes, first: bytes = b"") -> Callable[[int, float], Found]:
    """One WebSocket that sends without end."""

    def attack(port: int, seconds: float) -> Found:
        sock = upgraded(port)
        sock.sendall(first)
        return push(sock, data * max(1, 65_536 // len(data)), seconds)

    return attack


def unread_pongs(port: int, seconds: float) -> Found:
    return push(upgraded(port), frame(PING, b"x" * 125) * 500, seconds, reads=False)


def endless_head(port: int, seconds: float) -> Found:
    sock = connected(port)
    sock.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    return push(sock, b"X-More: " + b"x" * 1_000 + b"\r\n", seconds)


def endless_url(port: int, seconds: float) -> Found:
    sock = connected(port)
    sock.sendall(b"GET /")
    return push(sock, b"x" * 65_536, seconds)


def silent(port: int, seconds: float) -> Found:
    """Connections that send nothing."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4_096), hard))
    held = [connected(port) for _ in range(1_500)]
    time.sleep(seconds)
    closed = 0
    for sock in held:
        sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            closed += not sock.recv(1)
    return {"opened": len(held), "closed": closed}


def began(port: int, **fields: Any) -> tuple[socket.socket, dict[str, Any]]:
    """A session, and what the gateway answered."""
    sock = upgraded(port)
    sock.sendall(message(type="session.start", **{"reads": [], **fields}))
    _, data = next(received(sock))
    return sock, json.loads(data)


def emoji(port: int, seconds: float) -> Found:
    """Sessions that say much at once and finish nothing, then are cut."""
    count = 0
    for _ in until(seconds):
        sock, _ = began(port, speaks="en", reads=["ja"], meeting=f"emoji-{count}")
        for n in range(90):
            sock.sendall(message(type="utterance.partial", id=f"u{n}", rev=1, text="😀" * 900))
        sock.sendall(message(type="ping", nonce="x"))
        for _, data in received(sock):
            if b'"pong"' in data or b'"error"' in data:
                break
        sock.close()
        count += 1
    return {"sessions": count}


def utterances(port: int, seconds: float) -> Found:
    """Much that nobody reads, in many meetings."""
    text, count = "😀" * 2_000, 0

    def speak(name: str) -> None:
        nonlocal count
        sock, _ = began(port, speaks="en", meeting=f"flood-{name}")
        sock.settimeout(0.02)
        n = 0
        for _ in until(seconds):
            for _ in range(5):
                sock.sendall(message(type="utterance.final", id=f"u{n}", rev=1, text=text))
                n += 1
            with contextlib.suppress(TimeoutError):
                while sock.recv(65_536):
                    pass
            time.sleep(0.06)
        count += n
        sock.close()

    threads = [threading.Thread(target=speak, args=(str(n),)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"utterances": count}


def joins(port: int, seconds: float) -> Found:
    """Sessions that begin and are cut at once."""
    begun = refused = 0
    for _ in until(seconds):
        sock, answer = began(port, meeting=f"join-{begun % 50}")
        begun += answer["type"] == "session.started"
        refused += answer["type"] == "error"
        # A reset instead of a goodbye, so that the session is kept.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    return {"begun": begun, "refused": refused}


def crowd(port: int, seconds: float) -> Found:
    """Private meetings that all want more than the engine can do."""
    socks = [began(port, speaks="en", reads=["ja"])[0] for _ in range(40)]
    text, n = "one two three four five six " * 4, 0
    for _ in until(seconds):
        for sock in socks:
            sock.sendall(message(type="utterance.final", id=f"u{n}", rev=1, text=text))
            drained(sock)
        n += 1
        time.sleep(0.03)
    return {"utterances": n * len(socks)}


def numbers(port: int, seconds: float) -> Found:
    """Numbers that JSON can carry, and msgpack or JavaScript cannot, in the honest session's meeting."""
    wrong = [
        {"type": f"utterance.{kind}", "rev": value} for kind in ("partial", "final") for value in (2**53, 2**64)
    ]
    sock, sent, answers = upgraded(port), 0, Counter[str]()
    sock.sendall(message(type="session.start", speaks="en", reads=[], meeting="honest"))
    frames = received(sock)
    next(frames)
    for _ in until(seconds):
        sock.sendall(message(**wrong[sent % len(wrong)], id=f"n{sent}", text="Hello."))
        sock.sendall(message(type="ping", nonce="x"))
        sent += 1
        # A partial that was taken would not be answered; the ping behind it is.
        while (answer := json.loads(next(frames)[1]))["type"] != "pong":
            answers[answer.get("code", answer["type"])] += 1
        # Two messages of 50 a second: faster, they would be refused for that.
        time.sleep(0.04)
    return {"sent": sent, "answers": answers}


def old_finals(port: int, seconds: float) -> Found:
    """What failed long ago is sent and cancelled again and again, in a meeting where much was said since."""
    # One session reads, so that there is a translation to cancel.
    socks = [began(port, speaks="en", reads=[] if n else ["ja"], meeting="old")[0] for n in range(40)]
    old = [
        message(type="utterance.final", id=f"old-{n}", rev=1, text="one two three four five six " * 4)
        + message(type="utterance.cancel", id=f"old-{n}")
        for n in range(2)
    ]

    def send(data: bytes, pause_s: float) -> bytes:
        heard = b""
        for sock in socks:
            sock.sendall(data)
            heard += drained(sock)
        time.sleep(pause_s)
        return heard

    send(b"".join(old), 1)
    # Not so many that the first leave the log. In the language that is read, they are done at once.
    for n in range(200):
        send(message(type="utterance.final", id=f"n{n}", rev=1, text="Said since.", lang="ja"), 0.012)
    time.sleep(1)
    send(b"", 0)
    sent, heard = 0, b""

    def told(what: str) -> int:
        return heard.count(f'"{what}"'.encode())

    for _ in until(seconds):
        # As often as they are taken: a final that was sent before counts as ten messages.
        heard += send(old[sent // len(socks) % 2], 0.25)
        sent += len(socks)
    # Each is answered; a cancel behind one that is refused may be as well. What it did comes a moment later.
    for _ in until(120):
        accepted = told("utterance.accepted")
        if accepted + told("error") >= sent and (told("translation.failed") or not accepted):
            break
        heard += send(b"", 0.1)
    accepted, cancelled = told("utterance.accepted"), told("translation.failed")
    return {"sent": sent, "accepted": accepted, "refused": told("error"), "cancelled": cancelled}


def asks(*questions: Callable[[int], str]) -> Callable[[int, float], Found]:
    """Connections that each are about one thing, eight at a time. Tells how often each answer came."""

    def attack(port: int, seconds: float) -> Found:
        answers: Counter[str] = Counter()

        def ask() -> None:
            for _ in until(seconds):
                answers.update([question(port) for question in questions])

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"answers": answers}

    return attack


def status(request: bytes) -> Callable[[int], str]:
    """Which HTTP status a request gets, after which the gateway closes."""

    def question(port: int) -> str:
        with connected(port) as sock:
            sock.sendall(request)
            answer = b"".join(iter(lambda: sock.recv(65_536), b""))
        return answer[len("HTTP/1.1 ") :][:3].decode("latin-1")

    return question


def page(*hosts: str) -> bytes:
    fields = "".join(f"Host: {host}\r\n" for host in hosts)
    return f"GET / HTTP/1.1\r\n{fields}Connection: close\r\n\r\n".encode()


def handshake(*, host: str = "127.0.0.1", origin: str) -> bytes:
    """As a browser sends it for a page of `origin`."""
    fields = f"Host: {host}\r\nOrigin: {origin}".encode()
    return UPGRADE.replace(b"Host: 127.0.0.1", fields)


def closed(handshake: bytes, message: bytes = b"") -> Callable[[int], str]:
    """With which code a WebSocket is closed, after a message if there is one; or the status that refuses it."""

    def question(port: int) -> str:
        with connected(port) as sock:
            sock.sendall(handshake)
            if (answer := answer_to_request(sock)) != "101":
                return answer
            sock.sendall(message)
            opcode, data = next(received(sock))
        return str(struct.unpack("!H", data[:2])[0]) if opcode == CLOSE else "not closed"

    return question


def gets(path: str) -> Callable[[int, float], Found]:
    """Connections that ask for the same again and again."""

    def attack(port: int, seconds: float) -> Found:
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        socks = [connected(port) for _ in range(32)]
        for sock in socks:
            sock.setblocking(False)
            sock.send(request)
        answered = 0
        for _ in until(seconds):
            for sock in select.select(socks, [], [], 0.1)[0]:
                data = sock.recv(1 << 20)
                answered += len(data)
                if data.startswith(b"HTTP/1.1 200"):
                    sock.send(request)
        return {"mb": round(answered / 1e6, 1)}

    return attack


def meeting_of(size: int, pause_s: float, say: Callable[[int], list[bytes]]) -> Callable[[int, float], Found]:
    """Sessions in one meeting that all read what all say, each within its limits.

    say: what a session sends each `pause_s` for the nth time. Afterwards each says a final, which must arrive.
    """

    def attack(port: int, seconds: float) -> Found:
        socks = [began(port, speaks="en", reads=["en"], meeting="crowd")[0] for _ in range(size)]
        heard, accepted, sent = 0, 0, 0
        tails = dict.fromkeys(socks, b"")

        def listen(until_s: float) -> None:
            nonlocal heard, accepted
            while (left_s := until_s - time.monotonic()) > 0:
                for sock in select.select(socks, [], [], left_s)[0]:
                    found = sock.recv(1 << 20)
                    if not found:
                        raise ConnectionResetError
                    heard += len(found)
                    found = tails[sock] + found
                    accepted += found.count(b'"utterance.accepted"')
                    # The first half of a word that is cut in two; not so much that one is counted twice.
                    tails[sock] = found[-19:]

        for n, _ in enumerate(until(seconds)):
            due_s, data = time.monotonic() + pause_s, b"".join(say(n))
            for at, sock in enumerate(socks):
                # Spread over the time, as people are.
                listen(due_s - pause_s * (size - at) / size)
                sock.sendall(data)
            sent += size
        for sock in socks:
            sock.sendall(message(type="utterance.final", id="last", rev=1_000_000, text="That was all."))
        for _ in until(120):
            if accepted >= size:
                break
            listen(time.monotonic() + 0.1)
        return {"sent": sent, "heard, MB": round(heard / 1e6), "finals accepted": accepted}

    return attack


# ---------------------------------------------------------------- texts over HTTP

# What takes the longest to look into, of those that are not too large.
TAGGED = "a <x/>" * 9_000


def tagged_texts(connections: int) -> Callable[[int, float], Found]:
    """Texts with tags, each again as soon as it is answered, with the token in the environment."""
    call = json.dumps({"text": [TAGGED], "target_lang": "JA", "source_lang": "EN", "tag_handling": "xml"}).encode()
    head = (
        f"POST /v2/translate HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {os.environ.get('TOKEN')}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(call)}\r\n\r\n"
    )

    def attack(port: int, seconds: float) -> Found:
        answers: Counter[str] = Counter()
        # They go with this process; an answer may take long.
        for _ in range(connections):
            threading.Thread(target=ask, args=(connected(port), answers), daemon=True).start()
        time.sleep(seconds)
        return {"answers": dict(answers)}

    def ask(sock: socket.socket, answers: Counter[str]) -> None:
        sock.settimeout(None)
        with contextlib.suppress(OSError):
            while True:
                sock.sendall(head.encode() + call)
                answers[answer_to_request(sock)] += 1
                # Its body, which is short.
                sock.recv(65_536)

    return attack


# What changes comes first, so that nothing of it is settled.
_LONG = "and they said it again and again " * 30


def partials(n: int) -> list[bytes]:
    return [message(type="utterance.partial", id=f"u{n // 200}", rev=n + 1, text=f"{n} {_LONG}"[:1_000])]


def takes_back(n: int) -> list[bytes]:
    return [*partials(200 * n), message(type="utterance.cancel", id=f"u{n}")]


def updates(n: int) -> list[bytes]:
    return [message(type="session.update", speaks=["en", "de"][n % 2], reads=["en", *["fr", "es"][: n % 3]])]


ATTACKS: dict[str, Callable[[int, float], Found]] = {
    "pings": flood(frame(PING)),
    "pongs": flood(frame(PONG)),
    "messages": flood(frame(TEXT, b"{}")),
    "fragments": flood(frame(CONTINUATION, fin=False), first=frame(TEXT, b"x", fin=False)),
    "bytes": flood(frame(TEXT, b" " * 60_000)),
    "unread pongs": unread_pongs,
    "endless head": endless_head,
    "endless address": endless_url,
    "silent connections": silent,
    "unfinished emoji": emoji,
    "utterances nobody reads": utterances,
    "joins": joins,
    "crowd": crowd,
    "60 say much": meeting_of(60, 0.05, partials),
    "100 say much": meeting_of(100, 0.05, partials),
    "100 take back": meeting_of(100, 0.1, takes_back),
    "100 change": meeting_of(100, 0.25, updates),
    "numbers": numbers,
    "old finals": old_finals,
    "foreign pages": asks(
        status(page("evil.com")),
        status(handshake(host="evil.com", origin="http://evil.com")),
        closed(handshake(origin="http://evil.com")),
    ),
    "malformed": asks(
        closed(handshake(origin="http://[")),
        status(page("127.0.0.1", "evil.com")),
        closed(UPGRADE, frame(TEXT, b"\xff\xfe")),
    ),
    "openapi": gets("/openapi.json"),
    "transcripts": gets("/v1/meetings/honest/transcript.json"),
    "texts with tags, 64": tagged_texts(64),
    "texts with tags, 200": tagged_texts(200),
}


if __name__ == "__main__":
    _, name, at_port, for_s = sys.argv
    sys.stdout.write(json.dumps(ATTACKS[name](int(at_port), float(for_s))))
