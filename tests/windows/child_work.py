"""Work of a child that a test starts."""


def say_hello(tell, control_fd):
    tell({"event": "hello"})
