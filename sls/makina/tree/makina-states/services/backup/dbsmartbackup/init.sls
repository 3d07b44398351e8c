{#- db_smart_backup, fetched from its repository and run each night by cron for the kinds of databases that are there. Projects override what they keep in
    /etc/dbsmartbackup/TYPE.conf.local; /etc/db_smart_backup_deactivated turns it off. #}
{%- set settings = salt['mc_dbsmartbackup.settings']() %}
db_smart_backup:
  pkg.installed:
    - pkgs: [git, cron, jq, xz-utils]
  mc_git.latest:
    - name: {{ settings.url }}
    - target: {{ settings.location }}
    - rev: {{ settings.rev }}
    - require:
      - pkg: db_smart_backup

db_smart_backup-link:
  file.symlink:
    - name: /usr/bin/db_smart_backup.sh
    - target: {{ settings.location }}/db_smart_backup.sh
    - require:
      - mc_git: db_smart_backup
{%- for type in settings.types %}

dbsmartbackup-{{ type }}.conf:
  file.managed:
    - name: /etc/dbsmartbackup/{{ type }}.conf
    - source: salt://makina-states/files/etc/dbsmartbackup/type.conf
    - template: jinja
    - makedirs: true
    - mode: 600
    - show_changes: false
    - defaults:
        type: {{ type }}
{%- endfor %}

run_dbsmartbackups-cron:
{%- if settings.cron_activated %}
  file.managed:
    - name: /etc/cron.d/run_dbsmartbackups
    - mode: 644
    - contents: |
        {{ settings.cron_minute }} {{ settings.cron_hour }} * * * root {{ settings.location }}/run_dbsmartbackups.sh --quiet --no-colors
    - require:
      - file: db_smart_backup-link
{%- else %}
  file.absent:
    - name: /etc/cron.d/run_dbsmartbackups
{%- endif %}
