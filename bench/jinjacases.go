package main

import "fmt"

// jinjaCases are templates as SLS files and their file templates have them: each leans on one thing.
func jinjaCases() []jinjaCase {
	sites := []any{}
	for i := range 60 {
		env := map[string]any{}
		for j := range 8 {
			env[fmt.Sprintf("key_%d", j)] = j
		}
		sites = append(sites, map[string]any{"name": fmt.Sprintf("Site%d", i), "enabled": i%5 != 0, "port": 8000 + i, "env": env, "kind": fmt.Sprintf("kind%d", i%4)})
	}
	pillar := map[string]any{}
	for i := range 3000 {
		pillar[fmt.Sprintf("variable_%d", i)] = map[string]any{"a": i, "b": []any{"x", "y", i}}
	}
	one := func(main string) map[string]string { return map[string]string{"main": main} }
	vars := map[string]any{"sites": sites}
	return []jinjaCase{
		{Name: "loop", About: "a long loop", Templates: one(jinjaLoop), Vars: map[string]any{"root": "/srv/app"}},
		{Name: "nested", About: "loops within loops, over mappings", Templates: one(jinjaNested), Vars: vars},
		{Name: "macros", About: "macros with defaults and keywords, call blocks", Templates: one(jinjaMacros), Vars: vars},
		{Name: "filters", About: "the filters of SLS files", Templates: one(jinjaFilters), Vars: vars},
		{Name: "data", About: "sorting, grouping, selecting, JSON", Templates: one(jinjaData), Vars: vars},
		{Name: "python", About: "Python's own: methods, %, format, do, namespaces", Templates: one(jinjaPython), Vars: vars},
		{Name: "inherit", About: "extends, blocks, super, include, import", Templates: map[string]string{
			"main": jinjaChild, "layout": jinjaLayout, "base": jinjaBase, "row": jinjaRow, "lib": jinjaLib}, Vars: vars},
		{Name: "sls", About: "a step of a project", Templates: one(jinjaStep), Vars: vars},
		{Name: "context", About: "a line, with 3,000 variables in scope", Templates: one("{{ variable_7.a }} {{ variable_8.b|join(',') }}\n"), Vars: pillar},
		{Name: "text", About: "a configuration file: much text, few values", Templates: one(jinjaText()), Vars: map[string]any{"name": "app", "port": 8080}},
	}
}

const jinjaLoop = `{% for i in range(5000) %}
f{{ i }}:
  file.managed:
    - name: {{ root }}/many/{{ i }}{% if loop.last %} # last{% endif %}
    - mode: '{{ '0644' if i % 2 else '0600' }}'
{% endfor %}
`

const jinjaNested = `{% for s in sites if s.enabled %}
{% for k, v in s.env.items() %}
{{ s.name }}-{{ loop.index }}-{{ loop.revindex0 }}: {{ k }}={{ v }}
{% else %}
{{ s.name }} has none
{% endfor %}
{% endfor %}
`

const jinjaMacros = `{% macro file(name, src, user='root', mode='0644') -%}
{{ name }}:
  file.managed:
    - source: salt://{{ src }}
    - user: {{ user }}
    - mode: {{ mode }}
{{ caller() if caller is defined else '' }}
{%- endmacro %}
{% macro pair(key, value) %}{{ key }}={{ value }}{% endmacro %}
{% for s in sites %}
{{ file('/etc/' + s.name, 'nginx/' ~ s.name, mode='0600') }}
{{ file('/etc/b', src='b') }}
{{ pair(s.name, s.port) }} {{ pair('kind', value=s.kind) }}
{% call file('/etc/c', 'c', 'www') %}    - makedirs: true{% endcall %}
{% endfor %}
`

const jinjaFilters = `{% for s in sites %}
{{ s.name|lower }} {{ s.name|upper|replace('SITE', 'host') }} {{ s.missing|default('none') }} {{ s.kind|title }}
{{ s.env.keys()|join(',') }} {{ s.env|length }} {{ s.name|trim|e }} {{ s.port|string|list|first }} {{ s.port|int + 1 }}
{{ 'some text that is long enough to be wrapped'|truncate(20) }} {{ s.name|indent(4) }} {{ '%s:%d'|format(s.name, s.port) }}
{% endfor %}
`

const jinjaData = `{{ sites|map(attribute='name')|join(' ') }}
{{ sites|selectattr('enabled')|map(attribute='port')|sum }}
{% for kind, group in sites|groupby('kind') %}{{ kind }}: {{ group|map(attribute='name')|sort|join(',') }}
{% endfor %}
{{ sites|sort(attribute='port', reverse=true)|map(attribute='name')|list }}
{% for k, v in sites[0].env|dictsort %}{{ k }}={{ v }} {% endfor %}
{{ sites|rejectattr('kind', 'equalto', 'kind1')|list|length }}
{{ sites[:9]|tojson }}
{% for row in sites|batch(7, none) %}{{ row|length }} {% endfor %}
`

const jinjaPython = `{% set out = [] %}{% set all = {} %}{% set ns = namespace(total=0, names='') %}
{% for s in sites %}
{% do out.append('{0}:{port}'.format(s.name, port=s.port)) %}{% do all.update({s.name: s.env.get('key_3', 0)}) %}
{% set ns.total = ns.total + s.port %}{% set ns.names = s.name %}
{{ '%s-%05d-%s' % (s.name, s.port, s.kind) }} {{ s.name.lower().replace('site', 'x').split('x')|join('/') }} {{ s.name[1:3] }}
{{ s.name.startswith('Site') and s.port > 8010 or s.kind in ('kind1', 'kind2') }} {{ [s.name, s.port] + [1] }} {{ s.port // 7 * 2 - 1 }}
{% if s.kind == 'kind1' and not s.enabled %}off{% elif s.kind != 'kind2' %}on{% else %}{{ s.kind ~ s.port }}{% endif %}
{% endfor %}
{{ out|join(' ') }} {{ all.items()|list|length }} {{ ns.total }} {{ ns.names }}
`

const (
	jinjaBase = `{% block head %}# {% block title %}base{% endblock %}
{% endblock %}{% block body %}{% endblock %}
{% block foot %}# end{% endblock %}
`
	jinjaLayout = `{% extends 'base' %}{% import 'lib' as lib %}
{% block body %}{% for s in sites %}{% block site scoped %}{{ lib.line(s.name, s.port) }}{% endblock %}
{% endfor %}{% endblock %}
`
	jinjaChild = `{% extends 'layout' %}{% from 'lib' import line with context %}
{% block title %}child of {{ super() }}{% endblock %}
{% block site %}{{ super() }} {% include 'row' %}{% endblock %}
{% block foot %}{{ line('foot', sites|length) }} {{ super() }}{% endblock %}
`
	jinjaLib = `{% set sep = ': ' %}{% macro line(a, b) %}{{ a }}{{ sep }}{{ b }}{% endmacro %}`
	jinjaRow = `{{ s.kind }}/{{ s.port }}{% if s.enabled %} enabled{% endif %}`
)

const jinjaStep = `{% set cfg = {'user': 'www', 'mode': '0644'} %}
{% macro file(name, src, mode=cfg.mode) -%}
{{ name }}:
  file.managed:
    - source: salt://{{ src }}
    - user: {{ cfg.user }}
    - mode: {{ mode }}
{%- endmacro %}
{% for s in sites if s.enabled %}
{{ file('/etc/nginx/sites/%s.conf' % s.name, 'nginx/' ~ s.name|lower ~ '.conf') }}
{% for k, v in s.env.items() %}
{{ s.name }}-{{ loop.index }}-env:
  environ.setenv:
    - name: {{ k|upper }}
    - value: "{{ v|default('none', true) }}"
{% endfor %}
{% if not loop.last %}# {{ '-' * 10 }}{% endif %}
{% endfor %}`

func jinjaText() string {
	out := ""
	for i := range 400 {
		out += fmt.Sprintf("# %d: a comment of a configuration file, as most of its lines are\n", i)
		if i%20 == 0 {
			out += "server { name {{ name }}; port {{ port + " + fmt.Sprint(i) + " }}; }\n"
		}
	}
	return out
}
