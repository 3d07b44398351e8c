#!/usr/bin/env python3
"""Records what Python's re makes of the expressions below; run it with Python 3.11. It writes expected.json beside itself."""

import itertools
import json
import pathlib
import re

EXPRS = ["a", "a|ab", "(a|ab)(c|bcd)?", "(a)(b)?", "(?P<x>a)(?P=x)?", r"(a)\1", r"^a", r"a$", r"a\Z", r"\Aa", r"(?m)^b$", r"(?i)A", r"(?s).+", r".+", r"\w+", r"\W+", r"\d+", r"\D+", r"\s+",
    r"\S+", r"[\w-]+", r"[^\W\d]+", r"[\D]+", r"[\S ]+", r"[\W]", r"(?a)\w+", r"(?a)[\W]+", r"(?a)\s", r"(?a)[^\D]", r"\bé", r"\b\w", r"a\B", r"(?a)\bb", r"x*", r"b*", r"b*?", r"a{2}", r"a{,2}", r"a{1,}", r"a{", r"{a}",
    r"a{2,1}", r"a{,}", r"a++", r"a?+b", r"a{1,2}+", r"(?>a|ab)c", r"(?=a)", r"(?!a).", r"(?<=a)b", r"(?<!a)b", r"(?<=ab)c", r"(a)?(?(1)b|c)", r"(?P<n>a)?(?(n)b|c)", r"[]a]", r"[^]a]", r"[a-]", r"[-a]", r"[a\-b]", r"[a-c]+",
    r"[c-a]", r"[\d-a]", r"[a", r"(a", r"a)", r"*a", r"a**", r"a*?", r"a+?b", r"\p{L}", r"\z", r"\e", r"\x61", r"\u0061", r"\U00000061", r"\x6", r"\061", r"\0", r"\141", r"\8", r"(?<n>a)", r"(?P<1>a)", r"(?P<n>a)(?P<n>b)",
    r"(?P=q)", r"(?#c)a", r"(?#c", r"(?x) a # b", r"(?x: a )b", r"(?i:A)b", r"(?-i:a)", r"a(?i)b", r"(?L)a", r"(?z)", r"\/", r"\-", r"\_", r"\ ", "a\\", r"[\b]", r"[[:alpha:]]", r"[[a]]", r"a&&b", r"[a&&b]", r"$", r"^", r"\b",
    r"(?:a*)*", r"(a|b)*", r"(?:a|b)+c", r"()", r"|a", r"a|", r"((a)(b))c", r"\.", r"[.]", r"a.c", r"é", r"[à-ü]+", r"(?i)É", r"(\d+)\.(\d+)(?:\.(\d+))?", r"(\w+)\s+(\w+)", r"\\", r"\n", r"[\n]", r"\t", r"#", r"a b", r"~", r"'\"", r"a{2}{3}", r"(?P<a b>x)",
    r"(?i)straSSe", r"[^a]", r"(a)|(b)", r"\Bb", r"(?:)", r"(?m)$", r"(?m)^", r".*", r"(?s).*", r"a\Zb", r"[\x61-\x63]", r"\1(a)", r"(a\1)", r"\g", r"\400", r"\377", r"[\400]", r"(?iu)A", r"(?ms)a.^b"]
TEXTS = ["", "a", "ab", "abc", "abcd", "aab b", "a\n", "a\nb\n", "b", "xaé é9", "a-b_c d", "1.2.3", "aA\\", "²³ ½", "{a}a{", "]-[", "Straße É", "a\tb\u2003\x1c.", "aaaa"]
REPLS = ["-", r"[\g<0>]", r"\1", r"\2", r"\g<1>x", r"\n\\", r"\q", r"\g<x>", r"\0", r"\061", r"\/", "\\"]


def main():
    out = []
    for e in EXPRS:
        for t, flags in itertools.chain(((t, 0) for t in TEXTS), ((t, f) for t in TEXTS[4:9] for f in (re.I, re.M))):
            c = {"e": e, "t": t}
            if flags:
                c["f"] = "i" if flags == re.I else "m"
            try:
                r = re.compile(e, flags)
            except re.error:
                out.append({"e": e, "bad": True})
                break
            for name, m in (("search", r.search(t)), ("match", r.match(t))):
                if m:
                    c[name] = [m.group()] + list(m.groups())
            c["sub"] = r.sub("<\\g<0>>", t)
            out.append(c)
    for e, repl in itertools.product(["a", "(a)", "(?P<x>a)(b)"], REPLS):
        c = {"e": e, "t": "aab\n", "r": repl}
        try:
            c["sub"] = re.sub(e, repl, "aab\n")
        except (re.error, IndexError):
            c["bad"] = True
        out.append(c)
    path = pathlib.Path(__file__).parent / "expected.json"
    path.write_text("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in out) + "\n]\n", encoding="utf-8")
    print(len(out), "cases")


if __name__ == "__main__":
    main()
