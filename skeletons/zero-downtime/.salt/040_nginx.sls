{# The site of nginx: written, linked, tested, and loaded. Where its requests go is in another file, which 030_release.sls writes. A configuration that nginx refuses fails the deployment; then the
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

{{cfg.name}}-nginx-link:
  file.symlink:
    - name: /etc/nginx/sites-enabled/{{cfg.name}}.conf
    - target: /etc/nginx/sites-available/{{cfg.name}}.conf
    - require:
      - file: {{cfg.name}}-nginx-site

{# Where requests go has changed, in 030_release.sls. #}
{{cfg.name}}-nginx-test:
  cmd.run:
    - name: nginx -t
    - undo: 'true'
    - require:
      - file: {{cfg.name}}-nginx-link

{{cfg.name}}-switch:
  test.succeed_with_changes: []

{{cfg.name}}-nginx:
  service.running:
    - name: nginx
    - enable: true
    - reload: true
    - require:
      - cmd: {{cfg.name}}-nginx-test
    - watch:
      - test: {{cfg.name}}-switch
