{%- import "makina-states/services/php/macros.sls" as macros with context %}
{%- set fpm_pool = macros.fpm_pool %}
{%- set toggle_ext = macros.toggle_ext %}
{%- set composer = macros.composer %}
