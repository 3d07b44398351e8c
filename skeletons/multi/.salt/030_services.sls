{# The units of both services: web and api. test.succeed_with_changes reports a change in each deployment, so that they are restarted with the new code,
   api before web, which asks it. When a deployment fails after that, the old units come back and the services are restarted with the old code. #}
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}

{{cfg.name}}-logs:
  file.directory:
    - name: /var/log/{{cfg.name}}
    - user: {{cfg.user}}
    - group: {{cfg.group}}
    - mode: '0750'

{{cfg.name}}-logrotate:
  file.managed:
    - name: /etc/logrotate.d/{{cfg.name}}
    - source: salt://makina-projects/{{cfg.name}}/files/logrotate
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        user: {{cfg.user}}
        group: {{cfg.group}}

{{cfg.name}}-release:
  test.succeed_with_changes: []

{% for service in ['api', 'web'] %}
{{cfg.name}}-{{service}}-unit:
  file.managed:
    - name: /etc/systemd/system/{{cfg.name}}-{{service}}.service
    - source: salt://makina-projects/{{cfg.name}}/files/unit.service
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        service: {{service}}
        user: {{cfg.user}}
        group: {{cfg.group}}
        root: {{cfg.project_root}}
        data_root: {{cfg.data_root}}
        api_port: '{{data.api_port}}'
        workers: '{{data.workers}}'
        environment: {{cfg.default_env}}

{{cfg.name}}-{{service}}-socket-unit:
  file.managed:
    - name: /etc/systemd/system/{{cfg.name}}-{{service}}.socket
    - source: salt://makina-projects/{{cfg.name}}/files/unit.socket
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        service: {{service}}
        port: '{{data[service ~ '_port']}}'

{{cfg.name}}-{{service}}-socket:
  service.running:
    - name: {{cfg.name}}-{{service}}.socket
    - enable: true
    - require:
      - file: {{cfg.name}}-{{service}}-unit
      - file: {{cfg.name}}-logs
    - watch:
      - file: {{cfg.name}}-{{service}}-socket-unit

{{cfg.name}}-{{service}}:
  service.running:
    - name: {{cfg.name}}-{{service}}.service
    - enable: true
    - require:
      - service: {{cfg.name}}-{{service}}-socket
    - watch:
      - file: {{cfg.name}}-{{service}}-unit
      - test: {{cfg.name}}-release
{% endfor %}
