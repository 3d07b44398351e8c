{% set cfg = opts.ms_project %}
{% set data = cfg.data %}

{{cfg.name}}-page:
  file.managed:
    - name: {{data.docroot}}/index.html
    - source: salt://makina-projects/{{cfg.name}}/files/index.html
    - template: jinja
    - mode: '0644'
    - defaults:
        environment: {{cfg.default_env}}
