{#- The PostgreSQL server of the distribution. #}
{%- import "makina-states/services/db/postgresql/hooks.sls" as hooks with context %}
{%- import "makina-states/services/db/postgresql/macros.jinja" as macros with context %}
{%- set orchestrate = hooks.orchestrate %}
{%- set postgresql_db = macros.postgresql_db %}
{%- set postgresql_user = macros.postgresql_user %}
{%- set postgresql_group = macros.postgresql_group %}
{%- set install_pg_ext = macros.install_pg_ext %}
{%- set install_pg_exts = macros.install_pg_exts %}
include:
  - makina-states.services.db.postgresql.hooks

postgresql-pkgs:
  pkg.installed:
    - pkgs: [postgresql, postgresql-contrib, postgresql-client, libpq-dev]
    - watch:
      - mc_proxy: {{ orchestrate['base']['prepkg'] }}
    - watch_in:
      - mc_proxy: {{ orchestrate['base']['postpkg'] }}

postgresql-service:
  service.running:
    - name: postgresql
    - enable: true
    - watch:
      - mc_proxy: {{ orchestrate['base']['presetup'] }}
      - mc_proxy: pgsql-service-restart-hook
    - require_in:
      - mc_proxy: {{ orchestrate['base']['postbase'] }}
