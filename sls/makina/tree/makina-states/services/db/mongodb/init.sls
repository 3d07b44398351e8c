{#- MongoDB of the packages that mc_mongodb.settings names: Debian has none, an operator adds the repository of MongoDB first. #}
{%- import "makina-states/services/db/mongodb/macros.sls" as macros with context %}
{%- set mongodb_db = macros.mongodb_db %}
{%- set mongodb_user = macros.mongodb_user %}
{%- set mongodb = salt['mc_mongodb.settings']() %}
include:
  - makina-states.services.db.mongodb.hooks

mongodb-packages:
  pkg.installed:
    - pkgs: {{ mongodb.packages | json }}
    - watch:
      - mc_proxy: mongodb-pre-install
    - watch_in:
      - mc_proxy: mongodb-post-install

mongodb-service:
  service.running:
    - name: {{ mongodb.service }}
    - enable: true
    - watch:
      - mc_proxy: mongodb-pre-restart
    - watch_in:
      - mc_proxy: mongodb-post-restart
