{#- The hooks of PostgreSQL; projects find their names in orchestrate, by the release of the server and 'base'. #}
{%- import "makina-states/_macros/hooks.jinja" as hooks %}
{%- set settings = salt['mc_pgsql.settings']() %}
{%- set orchestrate = {'base': {}} %}
{%- set names = [] %}
{%- for key in ['prebase', 'prepkg', 'postpkg', 'presetup', 'postbase'] %}
{%- do orchestrate['base'].update({key: 'makina-postgresql-' ~ key}) %}
{%- do names.append(orchestrate['base'][key]) %}
{%- endfor %}
{%- for version in settings.versions %}
{%- do orchestrate.update({version: {}}) %}
{%- for key in ['pregroup', 'postgroup', 'predb', 'postdb', 'preuser', 'postuser', 'prefixowner', 'postfixowner'] %}
{%- do orchestrate[version].update({key: version ~ '-makina-postgresql-' ~ key}) %}
{%- do names.append(orchestrate[version][key]) %}
{%- endfor %}
{%- endfor %}
{%- do orchestrate['base'].update({'postinst': 'makina-postgresql-postinst'}) %}
{%- do names.append('makina-postgresql-postinst') %}
{{ hooks.chain(names) }}
pgsql-service-restart-hook:
  mc_proxy.hook: []
