{# The site of nginx: written, linked, tested, and loaded. A configuration that nginx refuses fails the deployment; then the
   files that were there before come back, and nginx never sees the broken ones. #}
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}

{{cfg.name}}-nginx-site:
  file.managed:
    - name: /etc/nginx/sites-available/{{cfg.name}}.conf
    - source: salt://makina-projects/{{cfg.name}}/files/nginx.conf
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        root: {{cfg.project_root}}
        data_root: {{cfg.data_root}}
        domain: {{data.domain}}
        listen: '{{data.listen}}'
        port: '{{data.port}}'

{{cfg.name}}-nginx-link:
  file.symlink:
    - name: /etc/nginx/sites-enabled/{{cfg.name}}.conf
    - target: /etc/nginx/sites-available/{{cfg.name}}.conf
    - require:
      - file: {{cfg.name}}-nginx-site

{{cfg.name}}-nginx-test:
  cmd.run:
    - name: nginx -t
    - onchanges:
      - file: {{cfg.name}}-nginx-site
      - file: {{cfg.name}}-nginx-link

{{cfg.name}}-nginx:
  service.running:
    - name: nginx
    - enable: true
    - reload: true
    - require:
      - cmd: {{cfg.name}}-nginx-test
    - watch:
      - file: {{cfg.name}}-nginx-site
      - file: {{cfg.name}}-nginx-link
