package jinja

import (
	"context"
	"fmt"
	"testing"

	"corpus-git/internal/py"
)

// benchTemplate is of the size and kind of a real SLS file.
const benchTemplate = `{% set cfg = {'user': 'www', 'mode': '0644'} %}
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

func benchVars() *py.Dict {
	sites := py.NewList()
	for i := range 50 {
		env := py.NewDict()
		for j := range 10 {
			env.SetStr(fmt.Sprintf("key_%d", j), int64(j))
		}
		sites.Append(py.NewDict("name", fmt.Sprintf("Site%d", i), "enabled", i%5 != 0, "env", env))
	}
	return py.NewDict("sites", sites)
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := New(Options{}).Parse("bench", benchTemplate)
	if err != nil {
		b.Fatal(err)
	}
	vars := benchVars()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(context.Background(), vars); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	env := New(Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := env.Parse("bench", benchTemplate); err != nil {
			b.Fatal(err)
		}
	}
}
