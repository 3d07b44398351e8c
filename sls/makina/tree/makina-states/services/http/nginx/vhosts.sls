{%- import "makina-states/services/http/nginx/macros.sls" as macros with context %}
{%- set virtualhost = macros.virtualhost %}
include:
  - makina-states.services.http.nginx
