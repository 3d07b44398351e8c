"""The states of corpus-git: corpus.output writes values for later steps and for the deployment's record, corpus.wait waits for signals."""

import json
import os
import socket


def output(name, value=None, values=None, **kwargs):
    """Write value under the state's name, or each of values."""
    ret = {"name": name, "result": False, "comment": "", "changes": {}}
    if (value is None) == (values is None):
        ret["comment"] = "one of value and values must be given"
        return ret
    if values is None:
        values = {name: value}
    if not isinstance(values, dict):
        ret["comment"] = "values must be a mapping, not {}".format(type(values).__name__)
        return ret
    said = "outputs: " + ", ".join(str(k) for k in values)
    ret["changes"] = {str(k): "written" for k in values}
    if __opts__["test"]:
        ret["result"] = None
        ret["comment"] = said + " would be written"
        return ret
    path = os.environ.get("CORPUS_OUTPUTS")
    if not path:
        ret["changes"] = {}
        ret["comment"] = "there is no CORPUS_OUTPUTS: this is not a step of a deployment"
        return ret
    with open(path, "a", encoding="utf-8") as out:
        out.write("\n" + json.dumps(values) + "\n")
    ret["result"] = True
    ret["comment"] = said + " written"
    return ret


def wait(name, count=None, timeout=None, on_failure=None, **kwargs):
    """Wait for the signals of the wait of this name: the server that runs the step does. from is a word of Python's."""
    ret = {"name": name, "result": False, "comment": "", "changes": {}}
    if __opts__["test"]:
        ret["result"] = True
        ret["comment"] = "it would wait for signals"
        return ret
    args = {"count": count, "timeout": timeout, "on_failure": on_failure, "from": kwargs.get("from")}
    args = {k: v for k, v in args.items() if v is not None}
    question = json.dumps({"function": "corpus.wait", "args": [name], "kwargs": args}).encode()
    # The path of a socket has at most 107 bytes: that through an open folder is short.
    folder = os.open(__opts__["root_dir"], os.O_RDONLY | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect("/proc/self/fd/%d/functions.sock" % folder)
            server.sendall(question + b"\n")
            with server.makefile("rb") as reader:
                line = reader.readline()
    except OSError as e:
        ret["comment"] = "the server does not answer: {}".format(e)
        return ret
    finally:
        os.close(folder)
    answer = json.loads(line) if line else {"error": "the server gave no answer"}
    ret["result"] = "error" not in answer
    ret["comment"] = answer["value"] if ret["result"] else answer["error"]
    return ret
