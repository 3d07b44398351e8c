{#- Apache of the distribution, checked before it is restarted or reloaded. #}
{%- import "makina-states/services/http/apache/macros.sls" as macros with context %}
{%- set virtualhost = macros.virtualhost %}
{%- set minimal_index = macros.minimal_index %}
{%- set apache = salt['mc_apache.settings']() %}
include:
  - makina-states.services.http.apache.hooks

makina-apache-pkgs:
  pkg.installed:
    - pkgs: {{ apache.packages | json }}
    - watch:
      - mc_proxy: makina-apache-pre-inst
    - watch_in:
      - mc_proxy: makina-apache-post-pkgs

makina-apache-directories:
  file.directory:
    - names: [{{ apache.ivhostdir }}, {{ apache.ssl_dir }}]
    - mode: 755
    - makedirs: true
    - watch:
      - mc_proxy: makina-apache-post-pkgs
    - watch_in:
      - mc_proxy: makina-apache-post-inst

{#- Other states refer to the main configuration by this name. #}
makina-apache-main-conf:
  mc_apache.include_module:
    - modules: [rewrite, headers, ssl]
    - watch:
      - mc_proxy: makina-apache-pre-conf
    - watch_in:
      - mc_proxy: makina-apache-post-conf

makina-apache-default-site:
  cmd.run:
    - name: a2dissite -q 000-default
    - onlyif: a2query -q -s 000-default
    - require:
      - mc_proxy: makina-apache-pre-conf
    - watch_in:
      - mc_proxy: makina-apache-post-conf

makina-apache-configuration-check:
  cmd.run:
    - name: apache2ctl configtest
    - onchanges:
      - mc_proxy: makina-apache-post-conf
    - require_in:
      - mc_proxy: makina-apache-check

makina-apache-service:
  service.running:
    - name: {{ apache.service }}
    - enable: true
    - watch:
      - mc_proxy: makina-apache-pre-restart
    - watch_in:
      - mc_proxy: makina-apache-post-restart
