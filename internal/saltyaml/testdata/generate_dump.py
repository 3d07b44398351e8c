#!/usr/bin/env python3
"""Write dumper.json: what PyYAML's C dumper makes of each value under Salt's settings.

Needs PyYAML with libyaml and Salt from the Python registry. A value is given as JSON, with {"$": [[key, value]…]} for a mapping,
whose keys may be of any type, and {"$f": text} for a float. Options: flow (null, true, false), sort, unicode, indented.
"""
import json
import os

import yaml
from salt.utils.yamldumper import IndentedSafeOrderedDumper, SafeOrderedDumper

INF = float("inf")
WORDS = "a |b c|yes|no|on|null|~|1|1.5|0644|1e3|1:30|0x1f|2001-01-01|=|<<|<|-|--|- a|-a|---|--- a|...|....|?|? a|?a|:|: a|:a|a:|a: b|a:b|#|# a|a #b|a#b|,|a,b|[|a]|{|a}|{{ a }}|&a|*a|!a|!|%a|@a|`a|'|\"|it's|say \"a\"|'a'|\"a\"|a\\b|\\|/a/b|http://a:80/b?c=d|a@b|a=b|a|>| |  | a|a |a  b|true|True|.inf|.nan|.5|5.|é|日本|😀|\u00a0|\u2028|a\u0085b|\ufeffa|\ta|a\tb|a\x01|a\x7f|a\x1bb|\x00|\x80|100%|a&b|a*b|$a|${a}|~a|a~|*|&|/|//|C:\\a"
STRINGS = list(dict.fromkeys(WORDS.split("|"))) + ["", "|", "a|b", "a\n", "a\nb", "a\nb\n", "\na", "a\n\nb", "a\n\n", "\n", "\n\n", " \n", "a \nb", "a\n b", "a\r\nb", "a\rb", "a\u2028b", "a: b\nc", "# a\nb", "a\n\n\n b", "é\nà",
    "word " * 30, ("word " * 30).strip(), "x" * 100, "x" * 100 + " y", ("x" * 50 + " ") * 4, ("x" * 79) + " " + "y" * 20, "'" + "word " * 30, "\t" + "word " * 30, "a: " + "word " * 30, "word  " * 30 + "x", "\t" + "word  " * 30 + "x", "word " * 16 + "\n" + "word " * 20, "é " * 60 + "é", "#" + "é " * 60]
NUMBERS = [0, 1, -1, 644, 2**63, -(2**70), 0.0, -0.0, 1.0, 1.5, -2.25, 0.1, 1e16, 1e17, 1e22, 1.5e22, 1e-5, 1e-7, 1.5e-7, 123456789.123, INF, -INF, float("nan"), True, False, None]
shared = [1, 2]
shared_map = {"a": [1]}
empty = []
VALUES = [[], {}, [[]], [{}], {"a": []}, {"a": {}}, [1, 2, 3], ["a", "b"], {"a": 1, "b": 2}, {"b": 1, "a": 2}, {"a": {"b": {"c": 1}}}, {"a": [1, 2]}, {"a": [{"b": 1}, {"c": 2, "d": [3]}]}, [[1, 2], [3, [4]]], [{"a": 1, "b": 2}, {"c": 3}],
    {"bar": 42, "baz": [1, 2, 3], "foo": True, "qux": 2.0}, {1: "a", 2: "b", 10: "c"}, {10: 1, 9: 2, True: 3}, {"a": 1, 1: 2}, {None: 1}, {None: 1, "a": 2}, {1.5: 1, 1: 2}, {True: "x"}, {"yes": 1, "no": 2}, {"": 1}, {"a": ""}, {"a": None, "b": ""}, ["", None],
    {"k" * 127: 1}, {"k" * 128: 1}, {"k" * 129: 1}, {"k" * 130: [1]}, {"a\nb": 1}, {"a\nb": [1], "c": 2}, {"a b " * 10: "x"}, {"a: b": 1}, {"# a": 1}, {"- a": 1}, {"'": 1}, {"\t": 1}, {"😀": "é"},
    {"a": "word " * 30}, {"a": {"b": {"c": "word " * 30}}}, ["word " * 30, "x"], {"a": "line one\nline two\n"}, ["a\nb\n", "c"], {"a": {"b": ["x\ny", {"c": "z\n"}]}}, list(range(60)), {"k%02d" % i: "value %d" % i for i in range(20)}, [["x" * 20] * 8], {"a": list("abcdefghij" * 5)}, {"a" * 60: "b" * 60}, {"a" * 81: 1, "b": 2}, ["x" * 90, "y"],
    [{"name": "a", "items": [{"x": 1, "y": [1, 2]}, {"x": 2}]}], {"file.managed": [{"name": "/a"}, {"mode": "0644"}, {"require": [{"pkg": "x"}]}]}, [[["a"]]], [[[]]], {"a": [[1, [2]]]}, {"a": [[], {}]},
    [shared, shared], {"a": shared, "b": shared}, {"a": shared_map, "b": shared_map, "c": shared}, [shared, [shared], {"x": shared}], [empty, empty], {"x": shared_map, "y": {"a": shared_map["a"]}}, {"z": shared_map["a"], "a": [shared_map]}]


def encode(v, ids):
    if isinstance(v, dict):
        return {"$": [[encode(k, ids), encode(x, ids)] for k, x in v.items()], "id": ids.setdefault(id(v), len(ids))}
    if isinstance(v, (list, tuple)):
        return {"$l": [encode(x, ids) for x in v], "id": ids.setdefault(id(v), len(ids))}
    if isinstance(v, float):
        return {"$f": repr(v)}
    if isinstance(v, int) and not isinstance(v, bool):
        return {"$i": str(v)}
    return v


def main():
    options = [dict(flow=f, sort=True, unicode=True, indented=False) for f in (None, True, False)]
    options += [dict(flow=False, sort=False, unicode=False, indented=False), dict(flow=False, sort=True, unicode=True, indented=True)]
    values = [w for w in (x for s in STRINGS for x in (s, {"k": s}, [s, s], {s: s}, {"k": {"l": [s]}}))] + [w for n in NUMBERS for w in (n, [n], {"k": n})] + VALUES
    lines = []
    for v in values:
        out = []
        for o in options:
            dumper = IndentedSafeOrderedDumper if o["indented"] else SafeOrderedDumper
            out.append(yaml.dump(v, Dumper=dumper, default_flow_style=o["flow"], sort_keys=o["sort"], allow_unicode=o["unicode"]))
        lines.append(json.dumps({"value": encode(v, {}), "out": out}))
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "dumper.json"), "w", encoding="utf-8") as f:
        f.write(json.dumps(options) + "\n" + "\n".join(lines) + "\n")
    print(len(lines), "values")


if __name__ == "__main__":
    main()
