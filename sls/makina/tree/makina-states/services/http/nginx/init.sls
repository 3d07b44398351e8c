{#- nginx of the distribution, checked before it is restarted or reloaded. #}
{%- import "makina-states/services/http/nginx/macros.sls" as macros with context %}
{%- set virtualhost = macros.virtualhost %}
{%- set toggle_vhost = macros.toggle_vhost %}
{%- set nginx = salt['mc_nginx.settings']() %}
include:
  - makina-states.services.http.nginx.hooks
  - makina-states.services.http.nginx.services

nginx-packages:
  pkg.installed:
    - pkgs: {{ nginx.packages | json }}
    - watch:
      - mc_proxy: nginx-pre-install-hook
    - watch_in:
      - mc_proxy: nginx-post-install-hook

nginx-directories:
  file.directory:
    - names:
      - {{ nginx.basedir }}/includes
      - {{ nginx.basedir }}/sites-available
      - {{ nginx.ssl_dir }}
    - mode: 755
    - makedirs: true
    - watch:
      - mc_proxy: nginx-post-install-hook
    - watch_in:
      - mc_proxy: nginx-pre-conf-hook

nginx-variables:
  file.managed:
    - name: {{ nginx.basedir }}/conf.d/00_corpus_variables.conf
    - source: salt://makina-states/files/etc/nginx/variables.conf
    - mode: 644
    - watch:
      - mc_proxy: nginx-pre-conf-hook
    - watch_in:
      - mc_proxy: nginx-post-conf-hook

{%- if nginx.remove_default_site %}

nginx-default-site:
  file.absent:
    - name: {{ nginx.basedir }}/sites-enabled/default
    - watch:
      - mc_proxy: nginx-pre-conf-hook
    - watch_in:
      - mc_proxy: nginx-post-conf-hook
{%- endif %}
