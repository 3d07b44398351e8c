{% set cfg = opts.ms_project %}
{% set data = cfg.data %}

{{cfg.name}}-docroot:
  file.directory:
    - name: {{data.docroot}}
    - mode: '0755'
    - makedirs: true
