{#- create_user(id, data) makes a user with a group and a home; data has group, groups, home, system, password (a hash), ssh_keys. #}
include:
  - makina-states.localsettings.users.hooks

{%- macro create_user(id, udata=None) %}
{%- set data = udata or {} %}
{%- set group = data.get('group', id) %}
{{ id }}:
  group.present:
    - name: {{ group }}
    - system: {{ data.get('system', False) }}
    - watch:
      - mc_proxy: groups-pre-hook
    - watch_in:
      - mc_proxy: groups-ready-hook
  user.present:
    - name: {{ id }}
    - gid: {{ group }}
    - home: {{ data.get('home', '/home/users/' ~ id) | json }}
    - shell: {{ data.get('shell', '/bin/bash') }}
    - system: {{ data.get('system', False) }}
{%- if data.get('groups') %}
    - optional_groups: {{ data.groups | json }}
    - remove_groups: false
{%- endif %}
{%- if data.get('password') %}
    - password: {{ data.password | json }}
{%- endif %}
    - require:
      - group: {{ id }}
    - watch:
      - mc_proxy: users-pre-hook
    - watch_in:
      - mc_proxy: users-ready-hook
{%- for key in data.get('ssh_keys', []) %}
{{ id }}-ssh-key-{{ loop.index }}:
  ssh_auth.present:
    - name: {{ key | json }}
    - user: {{ id }}
    - require:
      - mc_proxy: users-ready-hook
{%- endfor %}
{%- endmacro %}
{%- set add_user = create_user %}
