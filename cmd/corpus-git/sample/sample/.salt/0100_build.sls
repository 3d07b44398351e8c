{% set cfg = opts.ms_project %}
{% set data = cfg.data %}

{{cfg.name}}-build:
  cmd.run:
    - name: sh bin/build.sh {{data.docroot}}/style.css
    - cwd: {{cfg.project_root}}
    - require_in:
      - mc_proxy: {{cfg.name}}-built

{{cfg.name}}-built:
  mc_proxy.hook: []
