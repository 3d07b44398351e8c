{# Run by hand before the project is destroyed:  corpus-git task PROJECT remove
   Takes away what the steps made outside of the project. Packages stay: other projects may use them. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-nightly:
  cron.absent:
    - identifier: {{cfg.name}}-nightly
    - user: {{cfg.user}}

{{cfg.name}}-service:
  service.dead:
    - name: {{cfg.name}}
    - enable: false

{{cfg.name}}-files:
  file.absent:
    - names:
      - /etc/systemd/system/{{cfg.name}}.service
      - /etc/logrotate.d/{{cfg.name}}
      - /var/log/{{cfg.name}}
    - require:
      - service: {{cfg.name}}-service
