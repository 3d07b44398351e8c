{# Run by hand before the project is destroyed:  corpus-git task PROJECT remove
   Takes away what the steps made outside of the project. Packages stay: other projects may use them. #}
{% set cfg = opts.ms_project %}

{{cfg.name}}-nginx-files:
  file.absent:
    - names:
      - /etc/nginx/sites-enabled/{{cfg.name}}.conf
      - /etc/nginx/sites-available/{{cfg.name}}.conf

{{cfg.name}}-nginx:
  service.running:
    - name: nginx
    - reload: true
    - watch:
      - file: {{cfg.name}}-nginx-files

{{cfg.name}}-fpm-files:
  file.absent:
    - names:
      - /etc/php/{{cfg.data.php}}/fpm/pool.d/{{cfg.name}}.conf
      - /etc/logrotate.d/{{cfg.name}}
      - /var/log/{{cfg.name}}

{{cfg.name}}-fpm:
  cmd.run:
    - name: if php-fpm{{cfg.data.php}} --test; then systemctl restart php{{cfg.data.php}}-fpm; else systemctl stop php{{cfg.data.php}}-fpm; fi
    - onchanges:
      - file: {{cfg.name}}-fpm-files
