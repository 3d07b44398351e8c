#!/usr/bin/env python3
"""Write loader.json: what Salt's YAML loader makes of each case.

Needs PyYAML with libyaml, and Salt, from the Python registry:
    pip install pyyaml salt && python3 generate.py
The loader is salt.utils.yamlloader.SaltYamlSafeLoader with ordered mappings, as the YAML renderer of SLS files
sets it up. A value is recorded as its Python repr, with OrderedDict shown as dict; an error by its problem and line.
"""
import collections
import json
import os

import yaml
from salt.utils.yamlloader import SaltYamlSafeLoader

SCALARS = """
0 00 000 1 -1 +1 -0 +0 0644 0755 644 -0644 +0644 08 089 0800 0o17 0o644 0x1f 0X1F 0x1F -0x1f +0xff 0x 0x_ 0x1g 0b1 0b101 -0b11 0b2 0b 0b_
1_000 1_ _1 0_7 0_ 00_1 1__0 123456789012345678901234567890 -9223372036854775808 9223372036854775807 9223372036854775808
1:30 -1:30 +1:30 01:30 0:30 10:20:30 1:60 1:5 1:59:59 190:20:30 1:30.5 0:30. 1:30: 22:22 12:30:45.5 -1:30.5
1e3 1E3 1e+3 1.e+3 1.5e3 1.5e+3 1.5E-3 1. .5 -.5 +.5 ._5 1.5 -1.5 +1.5 1_000.5 1._5 .5e+3 . .. ... 1.2.3 1,5 1.0e+400 -1.0e+400 0.1 1e-3 123.456e+5 00.5 0.0 -0.0
.inf .Inf .INF -.inf +.inf .iNf .nan .NaN .NAN -.nan inf nan
~ null Null NULL nULL nil none None
true True TRUE tRUE false False FALSE yes Yes YES yES no No NO on On ON off Off OFF y Y n N t f oN oFF
2001-01-01 2001-1-1 2001-01-01T00:00:00Z 2001-12-14t21:59:43.10-05:00 2001-13-45 20010101 2001-01
= == < << <<< > - -- --- -a - ? ?a :a a: a:b a::b : :: ::1
a#b a\\b a"b a'b "a" 'a' '' "" 'it''s' "it's" "a\\tb" "\\x41" "\\u00e9" "\\U0001F600" "\\/" "\\q" "\\e" '\\n' "a\\\\b"
@a `a %a !a !!str !!int !!str|1 &a *a |a >a {a} [a] {} [] {a [a }a ]a ,a a,b a{b a[b a]b {{a}} {{a}}b {%a%} $a ^a ~a ~/x /a ./a ../a a/b http://a:80/b?c=d&e=f#g
!!str|0644 !!int|"0644" !!int|0x1f !!int|abc !!float|3 !!float|abc !!float|1e3 !!bool|yes !!bool|maybe !!null|x !!timestamp|2001-01-01 !!str|~ !!str|
!foo|x !<tag:yaml.org,2002:int>|7 !|12 !|a !!python/unicode|x !!python/str|x !!python/object/apply:os.system|x !!python/name:os.system|x !!set|x !!seq|x !!map|x !!merge|x !!omap|x !!unknown|1
salt://a/b.conf 10.0.0.1 1.2.3.4/24 00:11:22:33:44:55 fe80::1 12:30 user:group a=b k=v,w=x 50% #a a# 5s 1d 100M v1.0 1-2 --flag -x é ü 日本語 😀 \u00a0
""".split()

DOCS = [
    # documents
    "", " ", "\n", "\n\n", "# only\n", "---\n", "---\n...\n", "--- a\n", "--- # c\na: 1\n", "a\n...\n", "...\n", "a: 1\n---\nb: 2\n", "---\n---\n", "a\n---\n",
    "%YAML 1.1\n---\na: 1\n", "%YAML 1.2\n---\na: 1\n", "%YAML 2.0\n---\na\n", "%FOO bar\n---\na\n", "%TAG !e! tag:e.org:\n---\n!e!x a\n", "%TAG ! tag:yaml.org,2002:\n---\n!int '7'\n", "%YAML 1.1\na: 1\n", "\ufeffa: 1\n", "a: \ufeff1\n", "a: 1\r\nb: 2\r\n", "a: 1\rb: 2\r", "a: 1\u0085b: 2\u2028c: 3\n",
    "a: \x01\n", "a: \x7f\n", "a: \x00\n", "a: \u0080\n",
    # mappings
    "a: 1\nb: 2\n", "a:\n", "a:\nb:\n", "a:\n  b:\n    c: 1\n", "a:\n b: 1\n c: 2\n", "a:\n  b: 1\n c: 2\n", "a: 1\n b: 2\n", "a:\n  b: 1\n   c: 2\n", " a: 1\n b: 2\n", " a: 1\nb: 2\n", "a : 1\n", "a:1\n", "a:  1\n", "a: b: c\n", "a: 'b': c\n", "a: 1 b: 2\n",
    "a\nb: 1\n", "a: 1\nb\n", "a: 1\nb\nc: 2\n", "a: 1\n- b\n", "- a\nb: 1\n", "? a\n: 1\n", "? a\n? b\n", "? - a\n: 1\n", "? {a: 1}\n: 1\n", "? |\n  a\n: 1\n", "?a: 1\n", "{a: 1}: 2\n", "[a]: 2\n", "{{ a }}: 2\n", "a: {{ b }}\n", "a: {{ b }}/c\n", "a: {{b}}\n",
    "1: a\n", "1: a\n1.0: b\n", "1: a\ntrue: b\n", "true: a\nyes: b\n", "0644: a\n644: b\n", "~: a\n", "null: a\n~: b\n", "1.5: a\n", "yes: 1\nno: 2\n", "on:\n  push: 1\n", "'1': a\n1: b\n", "2001-01-01: a\n", "1:30: a\n", "'': a\n", ": a\n", "=: a\n", "'=': a\n=: b\n", "a: =\n",
    "a: 1\na: 2\n", "a: 1\nb: 2\n'a': 3\n", "a:\n  b: 1\n  b: 2\n", "a:\n  - b: 1\n    b: 2\n", "{a: 1, a: 2}\n", "x:\n  file.managed: []\n  file.managed: []\n", "/etc/x:\n  file.managed:\n    - a: 1\n/etc/y:\n  file: []\n/etc/x:\n  cmd: []\n",
    "a" * 128 + ": 1\n", "a" * 1024 + ": 1\n", "a" * 1025 + ": 1\n", "'a\n  b': 1\n", "a\n  b: 1\n", "\"a\\\n  b\": 1\n",
    # sequences
    "- a\n- b\n", "-\n", "- \n-\n", "- - a\n  - b\n- c\n", "- a: 1\n  b: 2\n", "- a: 1\n b: 2\n", "-a\n-b\n", "- a\n  b\n", "- a\n - b\n", "a:\n- b\n- c\n", "a:\n  - b\n c: d\n", "a:\n  - b\n  c: d\n", "a:\n- b\nc: d\n", "a: - b\n", "a: -b\n", "- ? a\n  : b\n", "- : b\n", "-\n  a: 1\n", "-\n- a\n", "- |\n x\n- y\n", "a:\n  -\n  - b\n",
    # flow
    "[a, b]\n", "[a, b,]\n", "[a,, b]\n", "[,]\n", "[ ]\n", "[a\n, b]\n", "[a\n b]\n", "[a: b]\n", "[a: b, c: d]\n", "[? a : b]\n", "[a:b]\n", "['a':b]\n", "{a:1}\n", "{'a':1}\n", "{\"a\":1}\n", "{a: 1, b}\n", "{a, b: }\n", "{a: , b: 1}\n", "{? a : 1}\n", "{? a}\n", "{: a}\n", "{a: [b, {c: d}]}\n", "{a: 1\n, b: 2}\n", "{a: 1,\nb: 2}\n", "a: {b: 1,\nc: 2}\n", "a: [b,\nc]\nd: 1\n", "[a", "{a: 1", "[a}\n", "a: [b\nc: d\n", "[a]]\n", "{a: 1}}\n", "[a] b\n", "{a: 1} # c\n", "[a, #c\n b]\n", "[a #c\n b]\n", "[a#b]\n", "[http://a/b, x:y]\n", "[::1, a::b]\n", "{a: http://x:80/}\n", "[-1, - 1]\n", "[-]\n", "[-, a]\n", "[?]\n", "[? ]\n", "[a?, ?b]\n", "{?a: 1}\n", "[*a]\n", "[&a b, *a]\n", "[!!str 1, !!int '2']\n", "['a', \"b\"]\n", "[a: [b: c]]\n", "[[a, b]: c]\n", "[{a: b}: c]\n", "[a, [b, [c, [d]]]]\n", "[\n  a,\n  b\n]\n", "a: [\n  b,\n  c\n]\n", "a: [\nb\n]\n", "{\n}\n", "a: {\n}\n", "a: {\n  b: 1\n}\n", "[a\tb]\n", "[a,\tb]\n", "{a:\t1}\n", "['a' 'b']\n", "{a b: c}\n", "[%a]\n", "[@a]\n", "[| a]\n", "[a\n---\nb]\n", "{a: |\n x}\n",
    # plain, multi-line
    "a b c\n", "a\nb\nc\n", "a\n\nb\n", "a\n  b\n c\n", "a: b\n  c\n", "a: b\n\n  c\n", "a: b\nc\n", "a: b # c\n", "a: b #c\n  d\n", "a: b#c\n", "a: #c\n", "a: #c\n  b\n", "a:\n  #c\n  b\n", "a: b\n  # c\n  d: e\n", "a: b c: d\n", "a:b:c: d\n", "a: b:\n", "a: 'b' c\n", "a: b 'c'\n", "a: b\n  'c'\n", "a: \"b\" # c\n", "a: \"b\"#c\n", "a: it's\n", "a: -\n", "a: - \n", "a: ?\n", "a: ? b\n", "a: ?b\n", "a: |b\n", "a: &\n", "a: *\n", "a: %b\n", "a: @b\n", "a: `b\n", "a: !\n", "a: ! b\n", "a: ,b\n", "a: ]\n", "a: }\n", "a: b]\n", "a: b}\n", "a: \\b\n", "a: b \\\n  c\n",
    # tabs
    "\ta: 1\n", "a:\t1\n", "a: 1\t\n", "a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n", "a:\n \tb: 1\n", "a: b\n\tc\n", "a: b\n  \tc\n", "-\ta\n", "- \ta\n", "- a\n\t- b\n", "a: |\n\tb\n", "a: |\n  \tb\n", "a: 'b\n\tc'\n", "a\t: 1\n", "a: b\t# c\n", "a: 1\n\t\nb: 2\n", "a: 1\n \t \nb: 2\n", "a:\n\t\n  b: 1\n", "\t\na: 1\n", "# c\n\t# d\na: 1\n", "a: 1\n\t# c\nb: 2\n", "[a,\n\tb]\n", "{a: 1,\n\tb: 2}\n", "?\ta\n:\tb\n", "-\t- a\n", "a:\t- b\n", "a: \t- b\n", "a:\t|\n  b\n", "a:\t# c\n  b: 1\n", "--- \ta\n", "---\ta\n", "\"a\tb\"\n", "a: 1 \t# c\n", "%TAG\t! tag:x,1:\n---\na\n",
    # quoted
    "'a'\n", "'a\n b'\n", "'a\n\n b'\n", "'a'b\n", "'a", "\"a", "a: 'b\nc'\n", "a: 'b\n c'\n", "a: \"b\nc\"\n", "\"a\\\n b\"\n", "\"a \\\n  b\"\n", "\"a\\\n  \\ b\"\n", "\"a\n\n\nb\"\n", "\"  a  \"\n", "\"a  \n  b\"\n", "' a '\n", "\"\\0\\a\\b\\t\\n\\v\\f\\r\\e\\ \\\"\\\\\\N\\_\\L\\P\"\n", "\"\\'\"\n", "\"\\x4\"\n", "\"\\xzz\"\n", "\"\\ud800\"\n", "\"\\uD83D\\uDE00\"\n", "\"\\U00110000\"\n", "\"\\\t\"\n", "'a''b'\n", "''''\n", "'\n'\n", "\"\n\"\n", "'a\n---\nb'\n", "\"a\n...\nb\"\n", "'--- a'\n", "'a' : 1\n", "\"a\": 1\n", "'a':1\n", "\"a\":1\n", "- 'a': 1\n", "a: 'x': y\n", "a: \"b\" c\n", "a: 'b' # c\n", "a: 'b'# c\n", "'a: 1'\n", "'a'\n: 1\n",
    # block scalars
    "|\n a\n b\n", "|\na\nb\n", "a: |\n  b\n  c\n", "a: |\n  b\n\n\n", "a: |-\n  b\n\n", "a: |+\n  b\n\n", "a: |+\n  b\n\nc: 1\n", "a: |2\n   b\n", "a: |2-\n   b\n", "a: |-2\n   b\n", "a: |0\n b\n", "a: |10\n b\n", "a: |9\n b\n", "a: |--\n b\n", "a: | b\n", "a: | # c\n  b\n", "a: |# c\n  b\n", "a: |\n", "a: |\nb: 1\n", "a: |\n\n\nb: 1\n", "a: |+\n\n\nb: 1\n", "a: |\n    b\n  c\n", "a: |\n  b\n    c\n  d\n", "a: |\n\n  b\n", "a: |\n    \n  b\n", "a: |\n  # b\n  c\n", "a: |\n  b\n # c\nd: 1\n", "a: |\n  b\n# c\nd: 1\n", "a: |\n  b", "a: |-\n  b", "a: >\n  b\n  c\n", "a: >\n  b\n\n  c\n", "a: >\n  b\n    c\n  d\n", "a: >\n  b\n\n    c\n\n  d\n", "a: >-\n  b\n  c\n\n", "a: >+\n  b\n\n", "a: >\n\n  b\n  c\n", "a: >\n  b\n  \tc\n", "a: >2\n    b\n  c\n", "- |\n a\n- >\n b\n", "- |\na\n", "a:\n- |\n  b\n- c\n", "a: |\n  b\n\tc\n", "a: |\n  {{ b }}\n  {% c %}\n", "a: |\n  b: c\n  d\n", "a: |\n  b\n ...\n", "a: |\n  b\n...\n", "a: |\r\n  b\r\n  c\r\n", "a: |\n  é\n  日本\n", "a: |\n  x\u2028y\n", "a: >\n  x\u0085y\n", "a: !!str |\n  0644\n", "a: &x |\n  b\nc: *x\n", "a: |\n  b \n  c  \n", "a: |  \n  b\n", "a: >\n  b \n  c\n",
    # anchors and aliases
    "a: &x 1\nb: *x\n", "a: &x {c: 1}\nb: *x\n", "a: &x [1]\nb: *x\n", "a: *x\n", "a: &x 1\nb: &x 2\nc: *x\n", "&x a: 1\nb: *x\n", "*x : 1\n", "a: &x\nb: *x\n", "a: &x b\n*x : c\n", "a: &x b\n? *x\n: c\n", "&a &b c\n", "&a *b\n", "a: & b\n", "a: &x-y_1 b\nc: *x-y_1\n", "a: &x: b\n", "a: &x.y b\nc: *x.y\n", "a: &x\n  b: 1\nc: *x\n", "&x\na: 1\n", "- &x a\n- *x\n- *y\n", "&x !!str 1\n", "!!str &x 1\n", "a: &x [*x]\n", "a: &x {b: *x}\n", "a: &é b\nc: *é\n", "[&a 1, &b 2, *a, *b]\n", "{&a b: *a}\n", "{*a : b}\n",
    # merge keys
    "a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  r: 3\n", "a: &x {p: 1}\nb:\n  p: 9\n  <<: *x\n", "a: &x {p: 1}\nb:\n  <<: *x\n  p: 9\n", "a: &x {p: 1}\nc: &y {q: 2}\nb:\n  <<: [*x, *y]\n", "a: &x {p: 1}\nc: &y {p: 2}\nb:\n  <<: [*x, *y]\n", "a: &x {p: 1}\nc: &y {p: 2}\nb:\n  <<: *x\n  <<: *y\n", "a: &x {p: 1}\nc: &y {q: 2}\nb:\n  <<: *x\n  <<: *y\n", "b:\n  <<: {p: 1}\n  q: 2\n", "b:\n  <<: 1\n", "b:\n  <<: [1]\n", "b:\n  <<: []\n", "b:\n  <<: [{p: 1}, {q: 2}]\n", "b:\n  <<: ~\n", "b:\n  '<<': 1\n", "b: <<\n", "- <<\n", "a: &x {p: 1}\nb: &y\n  <<: *x\n  q: 2\nc:\n  <<: *y\n  r: 3\n", "a: &x {1: p}\nb:\n  <<: *x\n  '1': q\n", "a: &x {p: {q: 1}}\nb:\n  <<: *x\n  p: {r: 2}\n", "<<: {a: 1}\nb: 2\n", "a: &x {p: 1, p: 2}\n", "a: &x {=: 1}\nb:\n  <<: *x\n", "a: !!merge b\n", "a: &x {p: 1}\nb: {<<: *x, <<: *x}\n", "b:\n  <<: {<<: {p: 1}, q: 2}\n  r: 3\n", "a: &x {p: 1, q: 2}\nb:\n  z: 0\n  <<: *x\n  a: 5\n",
    # tags on collections
    "!!map {a: 1}\n", "!!seq [a]\n", "!!map [a]\n", "!!seq {a: 1}\n", "!!str [a]\n", "!!int {a: 1}\n", "!!omap [a: 1]\n", "!!omap {a: 1}\n", "!foo {a: 1}\n", "!foo [a]\n", "!!pairs [a: 1, a: 2]\n", "! [a]\n", "! {a: 1}\n", "!<!foo> a\n", "a: !!str\nb: 1\n", "a: !!str\n", "a: !!int\n", "a: !!null\n", "!!python/tuple [a]\n", "!!python/unicode x: 1\n", "! '12'\n", "! \"a\"\n", "!!str 1: a\n", "!!int '1': a\n",
    # what SLS files look like
    "include:\n  - a.b\n\n{% if x %}\na: 1\n", "/etc/a.conf:\n  file.managed:\n    - source: salt://a/b.conf\n    - mode: 0644\n    - user: root\n    - makedirs: true\n    - template: jinja\n    - require:\n      - pkg: a\n", "a:\n  cmd.run:\n    - name: |\n        set -e\n        echo a\n    - unless: test -e /a\n    - watch_in:\n      - mc_proxy: b\n", "a:\n  cmd.run:\n    - name: echo a: b\n", "a:\n  cmd.run:\n    - name: 'echo a: b'\n", "a:\n  cmd.run:\n    - name: echo 'a' \"b\" # c\n", "a:\n  cmd.run:\n  - name: x\n  - env:\n    - A: 1\n    - B: 'yes'\n", "a:\n  pkg.installed:\n    pkgs:\n      - x: 1.10\n      - y\n", "a:\n  file.managed:\n    - contents: >-\n        x\n        y\n    - mode: '0755'\n", "a: {{ x|json }}\n", "makina-projects.app:\n  data:\n    domain: 'a.b'\n    port: 80\n    {key}: v\n", "a: {key}/b\n", "a: '{key}/b'\n", "a: \"{key}\"\n", "base:\n  '*':\n    - a\n", "base:\n  *:\n    - a\n", "a:\n  cron.present:\n    - minute: '*/5'\n    - hour: */5\n", "a: 5 * 3\n", "a: $HOME/b\n", "a: b && c || d\n", "a: !important\n", "a: 100%\n", "a: C:\\b\n", "a: [0644, 0755, on, off]\n",
]

# Cases added by comparing thousands of mutated documents stand here, one per difference that was found and mended.
FOUND = [
    "a: !\n", "! '12'\n", "! ''\n", "! \"\"\n", "!\n", "a: &x ! '12'\nb: *x\n", "- ! 'yes'\n- !\n", "\"\\'\"\n", "\"a\\\\'b\"\n", "!!str \"\\'\"\n", "&x \"'\\'\"\n",
    "[a?, b]\n", "[a?,b]\n", "{p? : 1}\n", "{p?: 1, q: 2?}\n", "[http://a/?b=c&d=e, {u: 'x?y'}]\n", "a: [b?c]\n? d\n: [e?]\n", "[\"?\\/\", a\\/b?, '\\/']\n", "# \\/ ?\n[\"\\/\", x?y]\n", "{\"a\": \"b\\/c\"}\n", "a: \\/b\nb: \"\\/\"\n", "a: \"\\\\/\"\n", "[d?>\n ]\n",
    "text\n%YAML 1.2\n", "a: \"\n%YAML 1.2\n\"\n", "# c\n%YAML 1.2\n---\na: 1\n", "# c\n\ufeffa: 1\n", "\ufeff# c\n\ufeffa: 1\n", "# c\n\ufeffa: 1\nb: 2\n", "a: 1\n\ufeffb: 2\n", "a: x\ufeffy\n", "a: \ufeffb\n",
    "[ key\n :]\n", "[ a\n  b:]\n", "[ a\n  b: c]\n", "{ a b:}\n", "{ a\n  b:, c}\n",
    "[a:]\n", "{a:}\n", "{a: 1, b:}\n", "{a: 1, p:: 2}\n", "[a::, b]\n", "[a: , b]\n", "a: [\n  b:,\n  c\n]\n", "&x [&y a:, b]\n",
    # lines of errors: the scanner goes beyond the token that is wrong; a tab where a key may begin
    "a: |\n   ] \n  b\nc:\n  d: 1\n", "a: |\n    b\n  c\nd:\n  e: 1\n", "a:\n  - name: |\n      %b\n    ,  echo a\n  - c: d\n", "a:\n  - b: 1\n { - c:\n    - d: b\n", "a\n:\n  b:\n  - c: x\n", "a\n\nb\na...\n:\n  c: 1\n", "%YAML 1.1\n--\na: 1\n", " a: 1\n--&x -\nb: 2\n",
    "a:\n  - b: >-\n ---\n      x\n    - c: d\n", ": >\n  b\n\n  c\n  ", ": |\n  b\n ...\na:\n  b: 1\n", "a: ]\nb:\n  c: []\n", "a: [\n  b,\n:  c\nb: c\n]\n", "a:\n  b: ,c\n  d:\n    - e\n", "a: |\n\\    \n  b\n", "a: [b,\nc]\nd 1\n", "a: >\n  b\n    c\n  \nd\n", "  a: |+\n  b\n\n",
    "|\na\nb", "|\nb\n", "[a\n--\nb]\n{", "a: >\n#  b\n    c\n  d\ne:\n  f: 1\n", "- a\n- *x\n- *y\nb: c\n", "a: &x---\n {p: 1}\nb:\n  <<: *x\n  p: 2\n",
    "# c\n\t\nkey: v\n", "# c\n\t# d\nkey: v\n", "a:\n  b: 1\n  # c\n\t\n  d: 2\n", "- a\n# c\n\t\n- b\n", "[a, # c\n\t\n b]\n", "{a: 1, # c\n\t\n b: 2}\n", "a: # c\n\t\n  b\n", "a: # c\n\t\n  b: 1\n", "? # c\n\t\n  a\n", "- # c\n\t\n  a\n", "# c\n\n\t\nkey: v\n", "a: 'x'\n# c\n\t\nb: 2\n", "a: |\n  # c\n  \t# d\nb: 1\n", "[a\n# c\n\t# d\n, b]\n", "# c\n\t",
    # Collections that nobody closed, directives, and lines with nothing but tabs.
    "a: [1, 2\n", "a: [1, 2", "a: [1,\n", "a: {b: 1\n", "a: {b: 1,\nc: 2\n", "a: [\n",
    "a: [\n\n\n", "a: [1\n\n# c\n", "a: [1\n  # c", "a: {b: 1\n\n\nc: 3", "- [a\n- b\n", "a: [b\nc: d\n",
    "a: [b,\n  c,\n", "x: 1\na: [b,\n  c,\n\n", "a: 'b\n", "a: 'b\nc: d\n\n", "a: \"b\n", "a: \"b\n\n\n",
    "a: {\n", "a: {b\n", "a: {b: \n", "a: {b: [c, d}\n", "a: [b}\n", "a: ]\n",
    "[\n", "[", "{", "[a", "[a\n#x\n", "%YAML 2.0\n---\na: 1\n",
    "%YAML 3.1\n---\na: 1\n", "# c\n%YAML 2.0\n---\na: 1\n", "%YAML 2.0\na: 1\n", "%YAML 1.3\n---\na: 1\n", "%YAML 1.1\n---\na: 1\n", "%YAML 0.9\n---\na: 1\n",
    "%YAML x\n---\na: 1\n", "%YAML 1\n---\na: 1\n", "%YAML 1.1 x\n---\na: 1\n", "%YAML 1.1\n%YAML 1.1\n---\na: 1\n", "%FOO bar\n---\na: 1\n", "%TAG ! x\n---\na: 1\n",
    "%TAG ! x:\n%TAG ! y:\n---\na: 1\n", "a: 1\n%YAML 2.0\n", "a: 1\n...\n%YAML 2.0\n---\nb: 1\n", "\t\n\t\na: 1\n", "a: 1\n\t\n\t\nb: 2\n", "a: 1\n\t\nb: 2\n",
    "a:\n\t\n\t\n  b: 2\n", "a:\n  b: 1\n\t\n\t\n  c: 2\n", "a:\n  - 1\n\t\n\t\n  - 2\n", "a: |\n  x\n\t\n\t\n  y\n", "a: |\n  x\n\t\n\t\nb: 1\n", "\t\n\t\n",
    "\t\n", "a: 1\n\t\n\t\n", "a: 1\n\t\n", "a: b\n\t\n\t\n c\n", "a: [1,\n\t\n\t\n2]\n", "a: 1\n  \t\n  \t\nb: 2\n",
    "a: 1\n\t\n\n\t\nb: 2\n", "a:\n\t\n\t\nb: 1\n", "a: 'x\n\t\n\t\ny'\n", "- 1\n\t\n\t\n- 2\n", "a: 1 #c\n\t\n\t\nb: 1\n", "\t# c\na: 1\n",
    "a: 1\n\t# c\nb: 2\n", "a: 1\n\t\n\t\n\t\nb: 2\n", "---\n\t\n\t\na: 1\n",
]


def plain(v):
    if isinstance(v, dict):
        return {plain_key(k): plain(x) for k, x in v.items()}
    if isinstance(v, list):
        return [plain(x) for x in v]
    if isinstance(v, tuple):
        return tuple(plain(x) for x in v)
    return v


def plain_key(k):
    return tuple(k) if isinstance(k, list) else k


def loader(stream):
    return SaltYamlSafeLoader(stream, dictclass=collections.OrderedDict)


def run(text):
    try:
        return {"want": repr(plain(yaml.load(text, Loader=loader)))}
    except RecursionError:
        return {"error": "found unconstructable recursive node"}
    except yaml.reader.ReaderError as e:
        return {"error": str(e.reason)}
    except yaml.YAMLError as e:
        out = {"error": str(getattr(e, "problem", e))}
        if getattr(e, "problem_mark", None) is not None:
            out["line"] = e.problem_mark.line + 1
        return out
    except Exception as e:  # a bad number, a bad boolean: not YAMLErrors in PyYAML
        return {"error": type(e).__name__}


def cases():
    for s in dict.fromkeys(SCALARS):
        s = s.replace("|", " ", 1) if s.startswith("!") else s
        yield "a: " + s + "\n"
        yield "- " + s + "\n"
        yield s + "\n"
        yield "[" + s + ", 1]\n"
    yield from DOCS
    yield from FOUND


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    out = [dict({"in": c}, **run(c)) for c in dict.fromkeys(cases())]
    with open(os.path.join(here, "loader.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(c) for c in out) + "\n]\n")
    print(len(out), "cases,", sum("error" in c for c in out), "errors")


if __name__ == "__main__":
    main()
