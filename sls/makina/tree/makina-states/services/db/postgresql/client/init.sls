{#- psql and the headers of the distribution. #}
postgresql-client-packages:
  pkg.installed:
    - pkgs: [postgresql-client, libpq-dev]
