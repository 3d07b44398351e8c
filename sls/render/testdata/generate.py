#!/usr/bin/env python3
"""Records what Salt makes of the templates in cases.txt, and of every filter and test that it has with every kind of input.

Run it with the Python of the environment that .ci/salt makes (bin/python beside the salt-call it prints), and with
PYTHONHASHSEED=0 TZ=UTC; it writes expected.json beside itself. Only results are kept, nothing of Salt's text.
"""

import json
import pathlib
import random
import re
import tempfile

import jinja2
import salt.config
import salt.utils.data, salt.utils.dateutils, salt.utils.dictupdate, salt.utils.files, salt.utils.hashutils, salt.utils.http
import salt.utils.jinja, salt.utils.network, salt.utils.path, salt.utils.stringutils, salt.utils.templates, salt.utils.user
import salt.utils.yamlencoding
import salt.modules.match
from salt.utils.decorators.jinja import JinjaFilter, JinjaGlobal, JinjaTest

HERE = pathlib.Path(__file__).parent
VARS = json.loads((HERE / "vars.json").read_text())
# What every filter is given, and what as its only argument.
INPUTS = ["typo", "[typo]", "{'a': typo}", "none", "true", "0", "5", "-1", "1.5", "''", "'abc'", "'5'", "'a b'", "'10.1.2.3/24'", "[]", "[1, 2, 1]",
          "['a', 'b']", "(1, 2)", "{}", "{'a': 1}", "'<a>'|safe"]
ARGS = ["typo", "1", "'a'", "['a']", "{'a': 1}", "none"]
# Their results are random, or those of the machine.
RANDOM = {"random_str", "rand_str", "random_hash", "random_shuffle", "random_sample", "random", "gen_mac", "which", "http_query", "dns_check", "list_files",
          "file_hashsum", "is_text_file", "is_bin_file", "is_empty", "get_uid", "pprint", "strftime", "date_format"}


def options(tmp):
    opts = dict(salt.config.DEFAULT_MINION_OPTS)
    opts.update(file_client="local", cachedir=tmp, file_roots={"base": [tmp]}, pillar_roots={"base": [tmp]}, root_dir=tmp, id="m")
    return opts


def names():
    env = jinja2.sandbox.SandboxedEnvironment(extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols", salt.utils.jinja.SerializerExtension])
    builtin = jinja2.sandbox.SandboxedEnvironment()
    filters = set(env.filters) | set(JinjaFilter.salt_jinja_filters)
    own = {n for n in filters if n not in builtin.filters} | set(JinjaFilter.salt_jinja_filters) - {"indent"}
    tests = set(builtin.tests) | set(JinjaTest.salt_jinja_tests) | {"list"}
    globs = set(builtin.globals) | set(JinjaGlobal.salt_jinja_globals) | {"odict", "show_full_context"}
    return sorted(filters), sorted(own), sorted(tests), sorted(globs)


def run(opts, template):
    context = dict(VARS, opts=opts, saltenv="base", grains={"id": "m"}, pillar={}, salt={})
    try:
        return {"out": salt.utils.templates.render_jinja_tmpl(template, json.loads(json.dumps(VARS)) | {k: context[k] for k in ("opts", "saltenv", "grains", "pillar", "salt")})}
    except Exception as e:
        undefined = isinstance(e.__cause__ or e.__context__, jinja2.exceptions.UndefinedError) or str(e).startswith("Jinja variable")
        return {"error": "UndefinedError" if undefined else type(e.__cause__ or e.__context__ or e).__name__}


def main():
    filters, own, tests, globs = names()
    cases = []
    for line in (HERE / "cases.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("> "):
            cases.append(line[2:])
    for f in filters:
        if f in RANDOM:
            cases += ["{{ " + i + "|" + f + " }}" for i in INPUTS[:2] if f not in ("http_query", "dns_check", "which", "gen_mac")]
            continue
        cases += ["{{ " + i + "|" + f + " }}" for i in (INPUTS if f in own else INPUTS[:3])]
        if f in own:
            cases += ["{{ " + i + "|" + f + "(" + a + ") }}" for i in ("'abc'", "['a', 'b']", "{'a': 1}", "5") for a in ARGS]
        cases.append("{{ typo|" + f + "|default('d') }}")
        cases.append("{{ [typo]|" + f + "(5)|default('d') }}")
    for t in tests:
        if not re.match(r"\w+$", t):
            continue
        cases += ["{{ " + i + " is " + t + " }}" for i in INPUTS[:3]]
        cases += ["{{ " + i + " is " + t + "(" + a + ") }}" for i in ("typo", "'a'") for a in ("typo", "'a'")]
    cases = list(dict.fromkeys(cases))
    with tempfile.TemporaryDirectory() as tmp:
        opts = options(tmp)
        out = [dict({"in": c}, **run(opts, c)) for c in cases]
    text = json.dumps({"filters": filters, "tests": tests, "globals": globs})[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c) for c in out) + "\n]}\n"
    text = re.sub(r" at 0x[0-9a-f]+", " at 0x0", text)
    (HERE / "expected.json").write_text(text, encoding="utf-8")
    print(len(out), "cases")


if __name__ == "__main__":
    main()
