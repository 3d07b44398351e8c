{#- psql and the headers of the distribution. #}
include:
  - makina-states.services.db.postgresql.hooks

postgresql-pkgs-client:
  pkg.installed:
    - pkgs: [postgresql-client, libpq-dev]
    - watch:
      - mc_proxy: makina-postgresql-prepkg
    - watch_in:
      - mc_proxy: makina-postgresql-postpkg
