{# Run by hand before the project is destroyed:  corpus-git task PROJECT remove
   Takes away what the steps made outside of the project. Packages stay: other projects may use them. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-nginx-files:
  file.absent:
    - names:
      - /etc/nginx/sites-enabled/{{cfg.name}}.conf
      - /etc/nginx/sites-available/{{cfg.name}}.conf
      - /etc/nginx/conf.d/{{cfg.name}}.conf

{{cfg.name}}-nginx:
  service.running:
    - name: nginx
    - reload: true
    - watch:
      - file: {{cfg.name}}-nginx-files

{{cfg.name}}-service:
  service.dead:
    - names:
      - {{cfg.name}}-blue
      - {{cfg.name}}-green
    - enable: false

{{cfg.name}}-files:
  file.absent:
    - names:
      - /etc/systemd/system/{{cfg.name}}-blue.service
      - /etc/systemd/system/{{cfg.name}}-green.service
      - /etc/logrotate.d/{{cfg.name}}
      - /var/log/{{cfg.name}}
    - require:
      - service: {{cfg.name}}-service
