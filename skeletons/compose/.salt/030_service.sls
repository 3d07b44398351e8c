{# The systemd unit of the application. test.succeed_with_changes reports a change in each deployment, so that the service is restarted
   with the new code. When a deployment fails after it, the old unit comes back and the service is restarted with the old code. #}
{% set cfg = opts.ms_project %}
{% set data = cfg.data %}

{{cfg.name}}-unit:
  file.managed:
    - name: /etc/systemd/system/{{cfg.name}}.service
    - source: salt://makina-projects/{{cfg.name}}/files/unit.service
    - template: jinja
    - mode: '0644'
    - defaults:
        name: {{cfg.name}}
        user: {{cfg.user}}
        group: {{cfg.group}}
        root: {{cfg.project_root}}
        data_root: {{cfg.data_root}}
        port: '{{data.port}}'
        environment: {{cfg.default_env}}

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

{{cfg.name}}-service:
  service.running:
    - name: {{cfg.name}}
    - enable: true
    - require:
      - file: {{cfg.name}}-logs
    - watch:
      - file: {{cfg.name}}-unit
      - test: {{cfg.name}}-release
