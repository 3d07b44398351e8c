{%- import "makina-states/services/db/postgresql/macros.jinja" as macros with context %}
{%- set postgresql_user = macros.postgresql_user %}
include:
  - makina-states.services.db.postgresql.hooks
