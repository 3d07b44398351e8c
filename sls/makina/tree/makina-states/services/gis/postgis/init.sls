{#- PostGIS of the distribution, and the database postgis, which others are made of as their template. #}
{%- import "makina-states/services/db/postgresql/init.sls" as pgsql with context %}
{%- set settings = salt['mc_pgsql.settings']() %}
include:
  - makina-states.services.db.postgresql

postgis-packages:
  pkg.installed:
    - pkgs: [postgresql-{{ settings.defaultPgVersion }}-postgis-3, postgis]
    - watch:
      - mc_proxy: {{ pgsql.orchestrate['base']['prepkg'] }}
    - watch_in:
      - mc_proxy: {{ pgsql.orchestrate['base']['postpkg'] }}
{{ pgsql.postgresql_db(settings.postgis_db, extensions=['postgis', 'postgis_topology', 'fuzzystrmatch', 'hstore']) }}
