{%- set nginx = salt['mc_nginx.settings']() %}
include:
  - makina-states.services.http.nginx.hooks

{# A configuration that nginx refuses fails the deployment before anything is restarted. #}
nginx-configuration-check:
  cmd.run:
    - name: nginx -t
    - onlyif: command -v nginx
    - onchanges:
      - mc_proxy: nginx-post-conf-hook
    - require_in:
      - mc_proxy: nginx-check-hook

nginx-hard-restart:
  cmd.wait:
    - name: systemctl restart {{ nginx.service }}
    - watch:
      - mc_proxy: nginx-pre-hardrestart-hook
    - watch_in:
      - mc_proxy: nginx-post-hardrestart-hook

nginx-service:
  service.running:
    - name: {{ nginx.service }}
    - enable: true
    - reload: true
    - watch:
      - mc_proxy: nginx-pre-restart-hook
    - watch_in:
      - mc_proxy: nginx-post-restart-hook
