"""Renders templates with Jinja2 for `bench jinja`: requests and answers are lines of JSON."""

import hashlib
import json
import sys
import time

import jinja2
import jinja2.ext

out = sys.stdout
cases = json.loads(sys.stdin.readline())


def environment(templates):
    # Not the sandboxed environment that Salt uses, which is slower.
    return jinja2.Environment(
        loader=jinja2.DictLoader(templates),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        extensions=[jinja2.ext.do, jinja2.ext.loopcontrols],
        auto_reload=False,
    )


def answer(value):
    out.write(json.dumps(value) + "\n")
    out.flush()


answer({"version": jinja2.__version__, "python": sys.version.split()[0]})
ready = {name: environment(c["templates"]).get_template("main") for name, c in cases.items()}
for line in sys.stdin:
    req = json.loads(line)
    case, text = cases[req["case"]], ""
    begin = time.perf_counter()
    for _ in range(req["n"]):
        if req["compile"]:
            text = environment(case["templates"]).get_template("main").render(case["vars"])
        else:
            text = ready[req["case"]].render(case["vars"])
    seconds = time.perf_counter() - begin
    answer({"seconds": seconds, "sum": hashlib.sha256(text.encode()).hexdigest()})
