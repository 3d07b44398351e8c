"""Functions of makina-states that templates call. The server that runs the step answers most of them."""

import collections
import copy
import json
import os
import socket

import salt.exceptions
import salt.utils.dictupdate


def _ask(name, args, kwargs):
    """Have the server call a function: one line of JSON there, one back, over a socket in Salt's own directory."""
    kwargs = {k: v for k, v in kwargs.items() if not k.startswith("__")}
    question = json.dumps({"function": name, "args": args, "kwargs": kwargs}).encode()
    # The path of a socket has at most 107 bytes: that through an open folder is short.
    folder = os.open(__opts__["root_dir"], os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect("/proc/self/fd/%d/functions.sock" % folder)
            server.sendall(question + b"\n")
            with server.makefile("rb") as reader:
                line = reader.readline()
    except OSError as e:
        raise salt.exceptions.CommandExecutionError("%s: the server does not answer: %s" % (name, e))
    finally:
        os.close(folder)
    if not line:
        raise salt.exceptions.CommandExecutionError("%s: the server gave no answer" % name)
    answer = json.loads(line)
    if "error" in answer:
        raise salt.exceptions.CommandExecutionError(answer["error"])
    return answer["value"]
