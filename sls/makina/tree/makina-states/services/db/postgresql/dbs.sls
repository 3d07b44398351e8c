{%- import "makina-states/services/db/postgresql/macros.jinja" as macros with context %}
{%- set postgresql_db = macros.postgresql_db %}
include:
  - makina-states.services.db.postgresql.hooks
