"""Work of a child that a test starts."""


def say_hello(tell, control_fd):
    tell({"event": "hello"})


def write_without_waiting():
    """Prints what select says of a pipe that nobody reads, and then of one that was read."""
    from probes.system.platform import os
    from probes.system.waiting import select

    ends, text = os.pipe(), b"a" * (1 << 20)
    os.set_blocking(ends[1], False)
    print(os.write(ends[1], text), select.select([], [ends[1]], [], 0.5)[1] == [])
    os.close(ends[1])
    got = b""
    while chunk := os.read(ends[0], 1 << 16):
        got += chunk
    print(got == text, select.select([], [ends[1]], [], 5)[1] == [ends[1]])


def read_the_clock():
    """Prints whether what every stage takes its times from has ticks below a millisecond."""
    import time

    import probes.system.platform

    until = time.perf_counter() + 0.2
    moments = set()
    while time.perf_counter() < until:
        moments.add(time.monotonic())
    print(probes.system.platform.__name__, len(moments) > 200)
