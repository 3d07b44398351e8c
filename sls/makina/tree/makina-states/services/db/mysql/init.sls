{#- MariaDB of the distribution. #}
{%- import "makina-states/services/db/mysql/macros.sls" as macros with context %}
{%- set mysql_base = macros.mysql_base %}
{%- set mysql_db = macros.mysql_db %}
{%- set mysql_user = macros.mysql_user %}
{%- set mysql = salt['mc_mysql.settings']() %}
include:
  - makina-states.services.db.mysql.hooks

mysql-packages:
  pkg.installed:
    - pkgs: {{ mysql.packages | json }}
    - watch:
      - mc_proxy: mysql-pre-install-hook
    - watch_in:
      - mc_proxy: mysql-post-install-hook

mysql-service:
  service.running:
    - name: {{ mysql.service }}
    - enable: true
    - watch:
      - mc_proxy: mysql-pre-restart-hook
    - watch_in:
      - mc_proxy: mysql-post-restart-hook
