#!/usr/bin/env python3
"""Writes expected/*.json: what Jinja2 makes of cases/*.txt.

    python3 -m venv venv && venv/bin/pip install 'jinja2==3.1.6'
    venv/bin/python generate.py [CASES_DIR EXPECTED_DIR]

A case is one line that starts with "> ", or begins with a line "=== name option...", its template on the lines after
it, and other templates after lines "--- file name". "--- vars" before the first case gives the variables of all
cases of the file, as JSON; within a case it gives those of that case. The last newline of a multi-line text is
not part of it.

Options: strict trim lstrip keep global (variables are globals too), data (load_json, import_json, load_text and
import_text exist).
"""
import json
import pathlib
import sys
import traceback

import jinja2
import jinja2.ext
import jinja2.nodes as nodes
import jinja2.sandbox


class DataExtension(jinja2.ext.Extension):
    """The data tags of Salt's SerializerExtension, for the formats json and text."""

    tags = {"load_json", "load_text", "import_json", "import_text"}

    def parse(self, parser):
        tag = parser.stream.current.value
        if tag.startswith("import_"):
            imp = parser.parse_import()
            name, line = imp.target, imp.lineno
            load = nodes.Filter(nodes.Name(name, "load").set_lineno(line), "load_" + tag[7:], [], [], None, None)
            return [imp, nodes.Assign(nodes.Name(name, "store").set_lineno(line), load.set_lineno(line)).set_lineno(line)]
        line = next(parser.stream).lineno
        parser.stream.expect("name:as")
        target = parser.parse_assign_target()
        macro = "_" + parser.free_identifier().name
        body = parser.parse_statements(("name:endload",), drop_needle=True)
        call = nodes.Call(nodes.Name(macro, "load").set_lineno(line), [], [], None, None).set_lineno(line)
        load = nodes.Filter(call, tag, [], [], None, None).set_lineno(line)
        return [nodes.Macro(macro, [], [], body).set_lineno(line), nodes.Assign(target, load).set_lineno(line)]


def parse(path):
    """Gives the cases of a file."""
    shared, cases, case, target = {}, [], None, None
    buf = []

    def flush():
        nonlocal shared
        text = "\n".join(buf)
        buf.clear()
        if target == "vars":
            if case is None:
                shared = json.loads(text)
            else:
                case["vars"] = json.loads(text)
        elif target is not None:
            case["files"][target] = text

    def new(name, options, template=None):
        c = {"name": name, "options": options, "files": {}, "vars": None}
        if template is not None:
            c["files"]["main"] = template
        cases.append(c)
        return c

    for n, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("> "):
            flush()
            new(f"line {n}", [], line[2:])
            case, target = cases[-1], None
        elif line.startswith("=== "):
            flush()
            name, *options = line[4:].split()
            case, target = new(name, options), "main"
        elif line.startswith("--- vars"):
            flush()
            target = "vars"
        elif line.startswith("--- file "):
            flush()
            target = line[9:]
        elif target is not None:
            buf.append(line)
    flush()
    for c in cases:
        if c["vars"] is None:
            c["vars"] = shared
    return cases


def run(case):
    opts = case["options"]
    files = case["files"]

    def load(name):
        if name not in files:
            return None
        return files[name], name, None

    env = jinja2.sandbox.SandboxedEnvironment(
        loader=jinja2.FunctionLoader(load),
        undefined=jinja2.StrictUndefined if "strict" in opts else jinja2.Undefined,
        trim_blocks="trim" in opts,
        lstrip_blocks="lstrip" in opts,
        keep_trailing_newline="keep" in opts,
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"] + ([DataExtension] if "data" in opts else []),
    )
    env.filters["load_json"] = lambda v: json.loads(str(v))
    env.filters["load_text"] = lambda v: str(v)
    if "global" in opts:
        env.globals.update(case["vars"])
    try:
        return {"output": env.get_template("main").render(json.loads(json.dumps(case["vars"])))}
    except Exception as e:
        where, line = None, 0
        if isinstance(e, jinja2.TemplateSyntaxError):
            where, line = e.name, e.lineno
        else:
            for f in traceback.extract_tb(e.__traceback__):
                if f.filename in files:
                    where, line = f.filename, f.lineno
        return {"error": type(e).__name__, "template": where, "line": line, "message": str(getattr(e, "message", None) or e)}


def main():
    here = pathlib.Path(__file__).parent
    src, dst = (pathlib.Path(a) for a in sys.argv[1:3]) if len(sys.argv) > 2 else (here / "cases", here / "expected")
    dst.mkdir(exist_ok=True)
    total = 0
    for path in sorted(src.glob("*.txt")):
        out = []
        for case in parse(path):
            out.append({**case, **run(case)})
        total += len(out)
        (dst / (path.stem + ".json")).write_text(json.dumps(out, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(total, "cases")


if __name__ == "__main__":
    main()
