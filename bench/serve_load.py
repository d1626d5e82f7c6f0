"""Many streams at a time against a running `onset serve`, and whether each of them came whole.

    onset serve MODEL --max-batch 64 &
    python3 bench/serve_load.py --clients 64 --seconds 60

A stream is lost when its status is not 200, its events do not end with [DONE], or the number of
tokens that it tells is not what was asked for. Needs nothing but Python.
"""

import argparse
import http.client
import json
import threading
import time


def stream(host, port, tokens, mask, number):
    """One request; seconds to its first text, seconds in all, and what was wrong."""
    body = json.dumps({
        "messages": [{"role": "user", "content": f"Say something about the number {number}."}],
        "max_tokens": tokens, "ignore_eos": True, "stream": True, "seed": number,
        "stream_options": {"include_usage": True}, "wemask": mask})
    begun = time.monotonic()
    first = None
    connection = http.client.HTTPConnection(host, port, timeout=300)
    try:
        connection.request("POST", "/v1/chat/completions", body,
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            return None, 0, f"status {response.status}: {response.read()[:200]}"
        counted, done = None, False
        for line in response:
            if not line.startswith(b"data: "):
                continue
            if line.strip() == b"data: [DONE]":
                done = True
                continue
            event = json.loads(line[6:])
            if "error" in event:
                return first, 0, str(event["error"])
            if first is None and event["choices"] and event["choices"][0]["delta"].get("content"):
                first = time.monotonic() - begun
            if event.get("usage"):
                counted = event["usage"]["completion_tokens"]
        if not done:
            return first, 0, "no [DONE]"
        if counted != tokens:
            return first, 0, f"{counted} tokens in place of {tokens}"
        return first, time.monotonic() - begun, None
    except OSError as error:
        return first, 0, repr(error)
    finally:
        connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tokens", type=int, default=32)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    results, lock = [], threading.Lock()

    def client(index):
        turn = 0
        while time.monotonic() < end:
            mask = "on" if index % 2 else "off"
            result = stream(options.host, options.port, options.tokens, mask,
                            index * 10000 + turn)
            with lock:
                results.append(result)
            turn += 1

    begun = time.monotonic()
    threads = [threading.Thread(target=client, args=(i,)) for i in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    lost = [wrong for _, _, wrong in results if wrong]
    firsts = sorted(first for first, _, wrong in results if first is not None and not wrong)
    print(f"{options.clients} clients, {seconds:.1f} s: {len(results)} streams, {len(lost)} lost, "
          f"{(len(results) - len(lost)) * options.tokens / seconds:.1f} tokens/s in all")
    if firsts:
        print(f"first text after {firsts[len(firsts) // 2]:.2f} s (median), "
              f"{firsts[-1]:.2f} s at most")
    for wrong in sorted(set(lost))[:5]:
        print("lost:", wrong)
    return 1 if lost else 0


if __name__ == "__main__":
    raise SystemExit(main())
